"""Target scripts: their declaration, and their actions: run once, check, list."""

import argparse
import importlib.util
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from profkit.capture.correctness import (
    BOUNDS,
    CheckFile,
    Declared,
    Status,
    TargetFile,
    Verdict,
    WrongResult,
    judge,
)
from profkit.capture.environment import digest, fingerprint, lock
from profkit.capture.script import ImportScope, scope_of, without_dashes
from profkit.core.atomic_file import write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.text_files import error_words
from profkit.core.typed_file import convert, encode, part, plain
from profkit.core.work import Work
from profkit.ui.text import literal_lines, one_line

Inputs = Mapping[str, Any]
"""Tensors by name, all on one device."""

_SEED = 42  # arbitrary, fixed: the same inputs in every run
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
"""Valid names of targets and variants: they are also names of files and NVTX ranges."""
_NO_KERNEL = re.compile(r"No available kernel|No viable backend", re.IGNORECASE)
_LONGEST_REASON = 300  # characters, chosen: three lines of a terminal
_TORCH = "torch"
INSTALL_TORCH = "pip install torch, or '.[gpu]' in profkit's checkout"
_LARGEST_SCRIPT = 1 << 20  # bytes, of which each takes Python up to 430 bytes to compile


class Unsupported(Exception):
    """A variant raises this where it can't run: on this device, for this shape or dtype."""


@dataclass(frozen=True)
class Variant:
    """One way to do a target's work.

    `run` takes the inputs, leaves them as they are and returns one tensor, or what the target's
    `compared` makes one of. `name` is the name of its NVTX range. `setting` is the code that
    selects it, `version` returns that of its library (raises Unsupported where that is not
    installed), `chooses` the variant that it dispatches to for the inputs, None without dispatch.
    `around()` is what a program sets once for many calls: calls are made, and timed, inside of it.
    """

    name: str
    run: Callable[[Inputs], Any]
    setting: str = ""
    version: Callable[[], str] | None = None
    chooses: Callable[[Inputs], str | None] | None = None
    around: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True)
class Target:
    """A piece of work and the variants that do it.

    `inputs(device, seed)` builds the tensors of `dtype` on "cuda" or "cpu", the same for the same
    seed. `reference(inputs)` gets copies in float64 and gives the right result, by the
    definition and not by a kernel under test. `shapes` and `work` describe one call of a variant.
    Nothing may touch CUDA before `inputs` is called. `compared` takes from a variant's result the
    part that `reference` gives, where all of it would take too long; None: the whole. It raises
    WrongResult (profkit.capture.correctness) where it sees that the rest can't be right.

    Raises ValueError for a name or dtype that can't be used, or variants named alike.
    """

    name: str
    shapes: Mapping[str, object]
    dtype: str
    inputs: Callable[[str, int], Inputs]
    reference: Callable[[Inputs], Any]
    variants: Sequence[Variant]
    work: Work | None = None
    compared: Callable[[Any], Any] | None = None
    scope: ImportScope | None = field(default=None, init=False, repr=False, compare=False)
    """The imports of the script that profkit loaded it from; None in a script that is run."""

    def __post_init__(self) -> None:
        names = [variant.name for variant in self.variants]
        for name in (self.name, *names):
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} is not a valid name: use letters, digits, '_', '.', '+', '-'"
                )
        if not names or len(set(names)) < len(names):
            raise ValueError(f"a target needs variants with different names, not {names}")
        if self.dtype not in BOUNDS:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(BOUNDS)}")

    def enter(self) -> None:
        """Let its functions import what lies beside its script; needed before they are called
        where several scripts were loaded."""
        if self.scope is not None:
            self.scope.enter()

    def chosen(self, names: Sequence[str] = ()) -> tuple[Variant, ...]:
        """The variants of these names in the order of declaration; all where none is named.

        Raises UsageError for a name that no variant has.
        """
        known = [variant.name for variant in self.variants]
        for name in names:
            if name not in known:
                raise UsageError(f"{self.name}: no variant {name!r}", f"use {', '.join(known)}")
        return tuple(variant for variant in self.variants if not names or variant.name in names)

    def described(self) -> Declared:
        """What the target declares."""
        return Declared(
            **part(self, "name", "dtype", "work"),
            shapes=dict(self.shapes),
            variants=tuple(variant.name for variant in self.variants),
        )

    def check(
        self,
        device: str,
        seed: int = _SEED,
        names: Sequence[str] = (),
        *,
        inputs: Inputs | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> list[Verdict]:
        """Compare each chosen variant with the reference; a variant that raises has failed.

        `inputs` are those of the device and seed where they are there already. `tell` gets the
        name of each variant before it is called.
        """
        self.enter()
        inputs = self.inputs(device, seed) if inputs is None else inputs
        truth = self._truth(inputs)
        verdicts = []
        for variant in self.chosen(names):
            tell(variant.name)
            verdicts.append(self._verdict(variant, inputs, truth))
        return verdicts

    def run_once(self, device: str, seed: int = _SEED, names: Sequence[str] = ()) -> list[str]:
        """Call each chosen variant exactly once for a profiler to see; the names that were run.

        All calls are warmed up first, then made in the order of declaration between
        cudaProfilerStart and cudaProfilerStop, each inside an NVTX range of the variant's name. On
        the CPU there is neither. Variants that can't run here are left out, and said on stderr.

        Raises EnvironmentProblem where none can run.
        """
        self.enter()
        inputs = self.inputs(device, seed)
        ready = [variant for variant in self.chosen(names) if _warmed_up(variant, inputs)]
        if not ready:
            raise self._none_runs()
        if device == "cpu":
            for variant in ready:
                with variant.around():
                    variant.run(inputs)
        else:
            _profiled(ready, inputs)
        return [variant.name for variant in ready]

    def main(
        self, argv: Sequence[str] | None = None, options: argparse.ArgumentParser | None = None
    ) -> NoReturn:
        """Execute the command line and exit.

        `options` is the script's own parser (made with `add_help=False`), if it has options of its
        own: what neither knows is an error. Without it only words that are no options are left to
        the script. A first `--` is skipped. Exit status: see profkit.core.errors; 6 also for an
        exception that a variant raises.
        """
        try:
            sys.exit(self._done(_arguments(self, argv, options)))
        except ProfkitError as error:
            failure = error
        except Exception as error:
            if not _lacks_torch(error):
                traceback.print_exc()
                sys.exit(TargetFailed.exit_code)
            failure = without_torch()
        _say(f"{failure}")
        sys.exit(failure.exit_code)

    def _done(self, arguments: argparse.Namespace) -> int:
        self.chosen(arguments.variant)
        if arguments.list:
            print(encode(convert(plain(self.described()), TargetFile), dense=False), end="")
            return 0
        lock(arguments.seed, fill_new_memory=arguments.check)
        device = _device(arguments.device)
        if not arguments.check:
            self.run_once(device, arguments.seed, arguments.variant)
            return 0
        verdicts = self.check(device, arguments.seed, arguments.variant)
        if arguments.report is not None:
            self._write_check(arguments.report, verdicts, device, arguments.seed)
        width = max(len(verdict.name) for verdict in verdicts)
        for verdict in verdicts:
            print(literal_lines(verdict.line(width)))
        failed = [verdict.name for verdict in verdicts if verdict.status is Status.failed]
        if failed:
            raise TargetFailed(f"{self.name}: {', '.join(failed)} failed the check")
        if all(verdict.status is Status.unsupported for verdict in verdicts):
            raise self._none_runs()
        return 0

    def _write_check(self, path: Path, verdicts: list[Verdict], device: str, seed: int) -> None:
        script = getattr(sys.modules["__main__"], "__file__", None)
        folder = None if script is None else Path(script).resolve().parent
        environment = fingerprint(folder, dtype=self.dtype)
        document = plain(self.described()) | {
            "device": device,
            "seed": seed,
            "variants": verdicts,
            "fingerprint": environment,
            "fingerprint_sha256": digest(environment),
        }
        try:
            write_atomic(path, encode(convert(document, CheckFile), dense=False))
        except OSError as error:
            raise EnvironmentProblem(f"{path} can't be written: {error.strerror}") from error

    def _none_runs(self) -> EnvironmentProblem:
        message = f"none of the chosen variants of {self.name} can run here"
        return EnvironmentProblem(message, "name other variants")

    def _truth(self, inputs: Inputs) -> Any:
        import torch

        copies = {
            name: value.to(torch.float64 if value.is_floating_point() else value.dtype, copy=True)
            for name, value in inputs.items()
        }
        truth = self.reference(copies)
        if truth.dtype != torch.float64:
            raise TargetFailed(f"the reference of {self.name} returns {truth.dtype}, not float64")
        if not torch.isfinite(truth).all():
            raise TargetFailed(f"the reference of {self.name} is not finite")
        return truth

    def _verdict(self, variant: Variant, inputs: Inputs, truth: Any) -> Verdict:
        import torch

        before = {name: value.clone() for name, value in inputs.items()}
        verdict = self._outcome(variant, inputs, truth)
        try:
            changed = [name for name in inputs if not torch.equal(inputs[name], before[name])]
            for name in changed:
                inputs[name].copy_(before[name])
        except RuntimeError:
            return verdict  # the variant took the device with it, and has failed for that
        if changed and verdict.status is not Status.failed:
            reason = f"writes to its inputs ({', '.join(changed)})"
            return Verdict(variant.name, Status.failed, None, verdict.bound, reason)
        return verdict

    def _outcome(self, variant: Variant, inputs: Inputs, truth: Any) -> Verdict:
        import torch

        status = Status.failed
        try:
            result = attempt(variant, inputs)
            if truth.is_cuda:
                torch.cuda.synchronize()
            result = result if self.compared is None else self.compared(result)
            return judge(variant.name, result, truth, self.dtype)
        except Unsupported as error:
            status, reason = Status.unsupported, str(error)
        except WrongResult as error:
            reason = str(error)
        except Exception as error:
            reason = error_words(error)
        return Verdict(variant.name, status, None, BOUNDS[self.dtype], reason)


def attempt(variant: Variant, inputs: Inputs) -> Any:
    """Call a variant; raises Unsupported also where torch has no kernel for what it was asked.

    torch gives its reasons as warnings: they become part of the message.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with variant.around():
                result = variant.run(inputs)
        except EnvironmentProblem as error:
            raise Unsupported(_one_line(str(error))) from error
        except RuntimeError as error:
            if not _NO_KERNEL.search(str(error)):
                raise
            reasons = [str(warning.message).partition(" (Triggered")[0] for warning in caught]
            first = next(iter(inputs.values()))
            kind = f"{str(first.dtype).removeprefix('torch.')} on {first.device.type}"
            reasons.insert(0, f"torch has no kernel for {kind}")
            raise Unsupported(_one_line("; ".join(dict.fromkeys(reasons)))) from error
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return result


def normal_inputs(device: str, seed: int, dtype: str, **shapes: Sequence[int]) -> Inputs:
    """Normally distributed tensors of these shapes by name, the same numbers on every device."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    precise = torch.float64 if dtype == "float64" else torch.float32
    tensors = {}
    for name, shape in shapes.items():
        values = torch.randn(tuple(shape), generator=generator, dtype=precise)
        tensors[name] = values.to(device=device, dtype=getattr(torch, dtype))
    return tensors


class _Words(list[str]):
    """A command line that knows whether anybody read more of it than the program's name."""

    read = False

    def __getattribute__(self, name: str) -> Any:
        if name != "read":
            self.read = True
        return super().__getattribute__(name)


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(words: _Words, *arguments: Any) -> Any:
        words.read |= arguments != (0,)
        return method(words, *arguments)

    return call


for _method in (list.__getitem__, list.__iter__, list.__contains__, list.__len__, list.__add__):
    setattr(_Words, _method.__name__, _watched(_method))


def load_target(path: Path, arguments: Sequence[str] = ()) -> Target:
    """Import a target script, which gets `arguments`, without running it; its one Target.

    What lies beside the script can be imported from then on, as when it is run, until another
    target is loaded or entered.

    Raises BadInput for a file that is absent or defines no Target or several, TargetFailed for a
    script that can't be imported, UsageError for options that it refuses.
    """
    if not path.is_file():
        raise BadInput(f"{path}: no such file")
    if path.stat().st_size > _LARGEST_SCRIPT:
        raise BadInput(f"{path}: larger than {_LARGEST_SCRIPT >> 20} MiB", "check the path")
    name = f"_profkit_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    scope = scope_of(path.resolve().parent)
    scope.enter()
    argv, words = sys.argv, _Words([str(path), *arguments])
    sys.argv = words
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except SystemExit as error:
        raise TargetFailed(f"{path} exits with {error.code} when it is imported") from error
    except Exception as error:
        if _lacks_torch(error):
            raise without_torch() from error
        raise TargetFailed(f"{path} can't be imported: {error_words(error)}") from error
    finally:
        sys.argv = argv
    if arguments and not words.read:
        raise UsageError(f"{path}: takes no options, {arguments[0]} is not read")
    targets = {id(value): value for value in vars(module).values() if isinstance(value, Target)}
    if len(targets) != 1:
        message = f"{path} defines {len(targets)} targets"
        raise BadInput(message, "define one at its top level; programs stand after --")
    (target,) = targets.values()
    object.__setattr__(target, "scope", scope)
    return target


class _Parser(argparse.ArgumentParser):
    """A parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        _say(f"{message}; see --help")
        sys.exit(UsageError.exit_code)


def _arguments(
    target: Target, argv: Sequence[str] | None, options: argparse.ArgumentParser | None
) -> argparse.Namespace:
    parser = _Parser(
        description=f"Run each variant of {target.name} once, for a profiler to see.",
        parents=[] if options is None else [options],
        allow_abbrev=False,
    )
    variants = ", ".join(variant.name for variant in target.variants)
    text = f"only this one, may be repeated: {variants}"
    parser.add_argument("--variant", action="append", default=[], metavar="NAME", help=text)
    parser.add_argument("--check", action="store_true", help="compare with the reference instead")
    parser.add_argument("--report", type=Path, metavar="FILE", help="with --check: write JSON")
    parser.add_argument("--list", action="store_true", help="print what the target declares")
    parser.add_argument("--seed", type=int, default=_SEED, metavar="N", help="of the inputs")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="[default: cuda if there is one]")
    arguments, left = parser.parse_known_args(
        without_dashes(sys.argv[1:] if argv is None else argv)
    )
    unknown = [word for word in left if options is not None or word.startswith("-")]
    if unknown:
        other = "" if options else "the script's own go through main(options=...); "
        raise UsageError(f"{target.name}: no option {unknown[0]}", f"{other}see --help")
    if left:
        _say(f"passed to the script: {' '.join(left)}")
    return arguments


def _say(message: str) -> None:
    print(one_line(f"profkit: {message}"), file=sys.stderr)


def _lacks_torch(error: Exception) -> bool:
    return isinstance(error, ModuleNotFoundError) and error.name == _TORCH


def without_torch() -> EnvironmentProblem:
    """The error where torch is missing."""
    return EnvironmentProblem("torch is not installed", INSTALL_TORCH)


def _device(requested: str | None) -> str:
    import torch

    if torch.cuda.is_available():
        return requested or "cuda"
    if requested == "cuda":
        raise EnvironmentProblem("torch sees no CUDA device", "try --device cpu")
    if requested is None:
        _say("no CUDA device, running on the CPU")
    return "cpu"


def _warmed_up(variant: Variant, inputs: Inputs) -> bool:
    try:
        attempt(variant, inputs)
    except Unsupported as error:
        _say(f"{variant.name} is skipped: {error}")
        return False
    return True


def _profiled(variants: Sequence[Variant], inputs: Inputs) -> None:
    import torch

    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for variant in variants:
        with variant.around(), torch.cuda.nvtx.range(variant.name):
            variant.run(inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"
