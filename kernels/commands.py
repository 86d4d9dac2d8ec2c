"""Command lines on several GPUs: each in a process that sees one GPU, its files collected.

DIR/NAME/...  the files of a command, complete or absent
DIR/failed/NAME.txt  the output of one that failed twice
DIR/commands.sha256  what the commands are: others are refused
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from tempfile import TemporaryDirectory

from msgspec import Struct, msgpack

from profkit.capture.environment import digest
from profkit.capture.gpu import select
from profkit.capture.process import end, supervised
from profkit.capture.program_files import program_files
from profkit.core import regular_file
from profkit.core.atomic_file import PART, write_atomic
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.core.lock import file_lock, gpu_lock
from profkit.core.text_files import MissingFile, read_text
from profkit.core.version import __version__
from profkit.execution.driver import Reply, State, drive
from profkit.execution.executors import executor_of
from profkit.execution.placement import Placement
from profkit.execution.protocol import Fate, MakeWorker, Outcome, Task
from profkit.execution.slurm import RESULTS, cancel_jobs, collected

OUT = "{out}"
"""In the words of a command: the folder for its files."""

FAILED, KEY, JOBS = "failed", "commands.sha256", "jobs"
_LINE = 300  # characters, chosen: of a reason
_RETURNED = 64 << 10  # bytes, chosen: of a failed command's output

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Command:
    """Words for Python's interpreter; it succeeds with one of `statuses` and a file."""

    name: str
    words: tuple[str, ...]
    statuses: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Commands:
    """Commands, the folder where they run, and the files that they need with their SHA-256.

    A `single` process at a time runs on this machine, and selects its device itself.
    """

    each: tuple[Command, ...]
    root: str
    inputs: Mapping[str, str]
    single: bool = False
    version: str = __version__


class _Result(Struct):
    """The files of a command by their paths; without any, its output."""

    key: str
    files: dict[str, bytes]
    output: str
    status: int


def inputs_of(scripts: Sequence[Path]) -> dict[str, str]:
    """The files of scripts by absolute path, with their SHA-256; raises BadInput for those that
    can't be read."""
    files = (file for script in scripts for file in program_files(script))
    return {str(file): regular_file.digest(file) for file in files}


def run_commands(
    commands: Commands, place: Placement, folder: Path, tell: Tell, *, resume: bool
) -> State:
    """Run the commands whose files the folder lacks; each is saved when its files come.

    Raises UsageError for a folder with other commands' files, or without `resume` with any,
    EnvironmentProblem where no GPU can be used or another process writes the folder.
    """
    key = _key(commands)
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder, f"{folder}: another process writes there"):
        _check_folder(folder, key, resume=resume)
        for left in folder.glob(f".*{PART}"):
            rmtree(left, ignore_errors=True)
        results = _Results(commands, folder, key, tell)
        cancel_jobs(folder / JOBS, place.cluster)
        for outcome in collected(folder / JOBS):  # of jobs that outlived an earlier driver
            results.accept_left(outcome)
        todo = [each.name for each in commands.each if not (folder / each.name).exists()]
        if not todo:
            return State(0)
        make: MakeWorker = MakeCommandWorker(commands, key)
        jobs = folder / JOBS
        executor = executor_of(place, make, jobs, on_cpu=commands.single, ahead=1)
        try:
            return drive(executor, todo, results)
        finally:
            executor.close()
            if not any((jobs / RESULTS).glob("*")):
                rmtree(jobs, ignore_errors=True)


def _key(commands: Commands) -> str:
    """The SHA-256 of all that the results depend on."""
    return digest(asdict(commands) | {"each": sorted(map(repr, commands.each)), "root": ""})


def _check_folder(folder: Path, key: str, *, resume: bool) -> None:
    try:
        before = read_text(folder / KEY).strip()
    except MissingFile:
        before = None
    if before is None and any(folder.iterdir()):
        raise UsageError(f"{folder}: contains other files", "give another folder")
    if before is not None and not resume:
        raise UsageError(f"{folder}: contains results", "resume with --resume, or another folder")
    if before is not None and before != key:
        raise UsageError(
            f"{folder}: was started with another target, matrix, options or profkit",
            "give the same ones, or another folder",
        )
    write_atomic(folder / KEY, f"{key}\n")


class _Results:
    """Writes the files of commands."""

    def __init__(self, commands: Commands, folder: Path, key: str, tell: Tell) -> None:
        self._commands = {each.name: each for each in commands.each}
        self._folder, self._key, self._tell = folder, key, tell
        self._output: dict[str, str] = {}
        self._shown = -1

    def content(self, task: str, _: int) -> Command:
        """The command."""
        return self._commands[task]

    def accept(self, task: str, outcome: Outcome) -> Reply:
        """Write its folder whole."""
        result = msgpack.decode(outcome.result, type=_Result)
        if not result.files:
            self._output[task] = result.output
            return Reply(failed=_reason(result))
        part = self._folder / f".{task}.{token_hex(4)}{PART}"
        try:
            for name, content in result.files.items():
                file = part / name
                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(file, content)
            part.rename(self._folder / task)
        except OSError as error:
            rmtree(part, ignore_errors=True)
            raise EnvironmentProblem(
                f"{self._folder / task}: can't be written ({error.strerror})",
                "free disk space, then continue with --resume",
            ) from None
        with suppress(OSError):
            (self._folder / FAILED / f"{task}.txt").unlink()
            (self._folder / FAILED).rmdir()
        return Reply()

    def accept_left(self, outcome: Outcome) -> None:
        """Write the files of a command that nobody asked for any more, if they are missing."""
        if outcome.fate is not Fate.done or outcome.task not in self._commands:
            return
        result = msgpack.decode(outcome.result, type=_Result)
        if result.key == self._key and not (self._folder / outcome.task).exists():
            self.accept(outcome.task, outcome)

    def give_up(self, task: str, reason: str) -> None:
        """Write why, and its output."""
        file = self._folder / FAILED / f"{task}.txt"
        file.parent.mkdir(exist_ok=True)
        write_atomic(file, f"{reason}\n\n{self._output.get(task, '')}".strip() + "\n")

    def watch(self, state: State) -> None:
        """Show how far they are."""
        if state.finished == self._shown:
            return
        self._shown = state.finished
        left = "" if state.remaining is None else f"  about {state.remaining:.0f} s left"
        self._tell(f"{state.finished} of {state.total}{left}", ", ".join(state.running))


def _bytes_of(file: Path) -> bytes:
    with regular_file.open_regular(file) as stream:
        return stream.read()


def _reason(result: _Result) -> str:
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("profkit:")]
    line = (errors or lines or ["no output"])[-1].removeprefix("profkit: ")
    return f"{line[:_LINE]} (exit status {result.status})"


@dataclass(frozen=True)
class MakeCommandWorker:
    """Makes workers of commands."""

    commands: Commands
    key: str

    @contextmanager
    def __call__(self, gpu: int | None) -> Iterator[CommandWorker]:
        """A worker."""
        yield CommandWorker(self.commands, self.key, gpu)


class CommandWorker:
    """Runs commands on the GPU of a number; None: the first that is visible."""

    def __init__(self, commands: Commands, key: str, gpu: int | None) -> None:
        self._commands, self._key, self._gpu = commands, key, gpu
        self._process: subprocess.Popen[bytes] | None = None
        self._checked = self._stopped = False

    def stop(self) -> None:
        """End the command."""
        self._stopped = True
        if self._process is not None:
            end(self._process)

    def __call__(self, task: Task) -> bytes:
        """Its files; raises EnvironmentProblem where they could not be right or the GPU is used."""
        self._check()
        environment = {**os.environ, **self._see_gpu()}
        command: Command = task.content
        with TemporaryDirectory(prefix="profkit-") as name:
            folder, log = Path(name, "out"), Path(name, "log")
            folder.mkdir()
            words = [word.replace(OUT, str(folder)) for word in command.words]
            with log.open("wb") as output:
                self._process = subprocess.Popen(
                    supervised([sys.executable, *words]),
                    env=environment,
                    cwd=self._commands.root,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                if self._stopped:
                    end(self._process)
                status = self._process.wait()
            files = {
                str(file.relative_to(folder)): _bytes_of(file)
                for file in sorted(folder.rglob("*"))
                if file.is_file() and status in command.statuses
            }
            text = _bytes_of(log)[-_RETURNED:].decode("utf-8", "replace")
        return msgpack.encode(_Result(self._key, files, "" if files else text, status))

    def _check(self) -> None:
        """Check this machine, once."""
        if self._checked:
            return
        commands = self._commands
        if commands.version != __version__:
            raise EnvironmentProblem(
                f"has profkit {__version__}, the driver {commands.version}",
                "install the same version everywhere",
            )
        if not Path(commands.root).is_dir():
            raise EnvironmentProblem(
                f"{commands.root}: no such folder there", "have the same folders everywhere"
            )
        for path, sha256 in commands.inputs.items():
            file = Path(path)
            if not file.is_file() or regular_file.digest(file) != sha256:
                raise EnvironmentProblem(
                    f"{file}: {'another file' if file.is_file() else 'no such file'} there",
                    "have the target at the same path everywhere",
                )
        self._checked = True

    def _see_gpu(self) -> Mapping[str, str]:
        """The variables by which a process sees the GPU, which nobody else measures now."""
        if self._commands.single:
            return {}
        selection = select(self._gpu)
        with gpu_lock(selection.lock):
            return selection.variables
