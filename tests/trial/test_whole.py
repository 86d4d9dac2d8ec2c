"""What is not called proven: gains without whole runs, and of results that are no numbers."""

import pytest
from msgspec.structs import replace

from profkit.trial.evidence import Evidence
from profkit.trial.outcome import outcome
from profkit.trial.run import TIMED_OUT, Perturbation, Result
from profkit.trial.search import search
from profkit.trial.trial_file import TrialFile
from profkit.trial.view import trial_document
from profkit.trial.whole import confirmed
from profkit.ui.document import Document
from tests.trial.simulated_program import SWITCHES, SimulatedProgram, row

CUT = Result((), 9.0, TIMED_OUT, failure="ended after 9 s")


def no_plain() -> Result | None:
    """There is no time for a run without hooks."""
    return None


def tried(
    *, stopped: bool = True, results: object = None, moved: float = 0.0
) -> tuple[TrialFile, Evidence]:
    program = SimulatedProgram(gains={"compile": 1.5}, moved={"compile": moved})
    evidence = search(program.measure, [SWITCHES["compile"]], 600, lambda: program.now, print)
    changes = {"stopped": stopped} | ({"results": results} if results else {})
    evidence.runs = [replace(run, **changes) for run in evidence.runs]
    return outcome(evidence, ("python", "train.py"), 600), evidence


def words(document: Document) -> str:
    return str(document.blocks)


def test_a_gain_whose_whole_run_was_cut_off_is_not_verified() -> None:
    made: list[tuple[str, ...]] = []

    def run_whole(names: tuple[str, ...], _: Perturbation) -> Result:
        made.append(names)
        return replace(CUT, switches=names)

    trial = confirmed(*tried(), run_whole, no_plain)
    assert made == [()]  # what an unchanged run has not shown needs no other
    assert row(trial, "compile").status == "unverified"
    assert trial.best == ()
    assert "Faster, not verified" in words(trial_document(trial))
    assert "Proven" not in words(trial_document(trial))


def test_a_gain_whose_whole_run_was_not_made_is_not_verified() -> None:
    trial, evidence = tried()
    evidence.interrupted = True
    assert (
        row(confirmed(trial, evidence, lambda *_: CUT, no_plain), "compile").status == "unverified"
    )


def test_an_interrupted_whole_run_keeps_what_was_measured() -> None:
    def run_whole(*_: object) -> Result:
        raise KeyboardInterrupt

    trial = confirmed(*tried(), run_whole, no_plain)
    assert trial.interrupted
    assert row(trial, "compile").status == "unverified"


def test_a_gain_is_proven_by_whole_runs_that_print_the_same() -> None:
    def run_whole(names: tuple[str, ...], _: Perturbation) -> Result:
        return Result(names, 9.0, output=f"loss {len(names)}\nsaved\n")

    trial = confirmed(*tried(), run_whole, no_plain)
    assert trial.best == ("compile",)
    assert "with compile are as unchanged" in trial.checked
    lacking = confirmed(
        *tried(), lambda names, _: Result(names, 9.0, output="" if names else "a\n"), no_plain
    )
    assert row(lacking, "compile").status == "changes results"


def test_a_gain_is_not_verified_where_the_program_prints_other_numbers_without_hooks() -> None:
    def run_whole(names: tuple[str, ...], _: Perturbation) -> Result:
        return Result(names, 9.0, output="loss 2.0\n", results=printed(2.0))

    def printed(loss: float) -> dict[str, list[list[float | None] | None]]:
        return {'number 1 of "loss #"': [[loss, 0.1]]}

    def beside(plain: Result) -> TrialFile:
        return confirmed(*tried(), run_whole, lambda: plain)

    same = beside(Result((), 4.0, output="loss 2.0\n", results=printed(2.0)))
    assert same.best == ("compile",)
    unhooked = "without profkit's hooks it prints the same, in 4.00 s"
    assert f"{unhooked}; with them and compile, caches filled, in 9.00 s" in same.checked
    for plain in (
        Result((), 9.0, output="loss 3.0\n", results=printed(3.0)),
        Result((), 9.0, output="loss 2.0\nsaved\n", results=printed(2.0)),
        Result((), 9.0, 1, failure="exit code 1: no file"),
    ):
        other = beside(plain)
        assert row(other, "compile").status == "unverified"
        assert "profkit's hooks change the program" in row(other, "compile").reason
    assert beside(CUT).best == ("compile",)


def test_what_compiling_takes_is_of_processes_from_their_start_to_their_end() -> None:
    def run_whole(names: tuple[str, ...], _: Perturbation) -> Result:
        return Result(names, 31.0 if names else 20.0, is_whole=True)

    trial, evidence = tried()
    early = row(trial, "compile")
    whole = row(confirmed(trial, evidence, run_whole, no_plain), "compile")
    assert trial.unchanged is not None
    assert early.speedup is not None
    saved = trial.unchanged.seconds * (1 - 1 / early.speedup)
    assert whole.prepares[1].seconds == pytest.approx(11.0 + 60 * saved)
    fewest, most = whole.prepares[1].units
    assert fewest <= whole.prepares[1].seconds / saved <= most
    longer = [b.seconds - a.seconds for a, b in zip(early.prepares, whole.prepares, strict=True)]
    assert longer[0] == pytest.approx(longer[1])


def test_a_line_that_is_another_in_each_run_says_nothing_of_hooks() -> None:
    trial, evidence = tried(stopped=False)
    named = [
        replace(run, output=f"saved to {chr(97 + n)}\n") for n, run in enumerate(evidence.runs)
    ]
    evidence.runs = named
    plain = Result((), 9.0, output="saved to z\n")
    assert confirmed(trial, evidence, lambda *_: CUT, lambda: plain).best == ("compile",)


def test_a_gain_is_not_verified_where_whole_runs_end_elsewhere() -> None:
    def ending(
        last: float | None, perturbed: float | None = 0.9, place: float = 0.1, moved: float = 0.0
    ) -> TrialFile:
        """Of programs that print their loss now and then, from 2 on."""

        def run_whole(names: tuple[str, ...], perturb: Perturbation) -> Result:
            if perturb and perturbed is None:
                return CUT
            losses = [2.0, 1.5, 1.0, last if names else perturbed if perturb else 0.9]
            return Result(
                names, 9.0, printed={'number 1 of "loss #"': [[x, place] for x in losses]}
            )

        return confirmed(*tried(moved=moved), run_whole, no_plain)

    assert ending(0.9).best == ending(1.0).best == ("compile",)
    assert row(ending(0.2), "compile").status == "unverified"
    assert "loss" in row(ending(0.2), "compile").reason
    lost = row(ending(None), "compile")  # NaN
    assert (lost.status, lost.reason.endswith('"loss #" is not finite')) == (
        "changes results",
        True,
    )
    assert ending(0.2, perturbed=0.5).best == ("compile",)  # it ends anywhere
    assert ending(0.6, perturbed=0.8).best == ("compile",)  # so do several
    assert "no time to see how far" in row(ending(0.2, perturbed=None), "compile").reason
    assert ending(0.95, place=1e-3, moved=1e-5).best == ("compile",)
    assert ending(0.95, place=1e-3).best == ()  # though its first results are equal


def test_results_that_are_no_numbers_prove_nothing() -> None:
    trial, evidence = tried(stopped=False, results={"losses": [[None]] * 60})
    trial = confirmed(trial, evidence, lambda *_: CUT, no_plain)
    assert row(trial, "compile").status == "unverified"
    shown = words(trial_document(trial))
    assert shown.count("losses are NaN or infinite") == 1
    assert "equal" not in shown


def test_a_switch_is_not_blamed_for_what_fails_without_it_too() -> None:
    _, evidence = tried()
    fail = "already running"  # as a file says that an ended run has left
    evidence.runs[1:] = [replace(run, failure=fail) for run in evidence.runs[1:]]
    found = row(outcome(evidence, ("python", "train.py"), 600), "compile")
    assert (found.status, found.reason) == ("undecided", f"unchanged runs fail too: {fail}")


def test_one_unchanged_run_is_not_called_equal_to_another() -> None:
    program = SimulatedProgram(interrupt_after=1)
    shown = words(trial_document(program.trial()))
    assert "equal" not in shown
    assert "no results" not in shown


def test_a_program_without_a_gpu_is_not_said_to_let_one_wait() -> None:
    trial, _ = tried()
    assert trial.unchanged is not None
    whole = replace(trial.unchanged, unit="the whole program", limit="host")
    on_cpu = replace(trial, gpu="", unchanged=whole)
    assert "device" not in words(trial_document(on_cpu))
    assert "for the whole program" in words(trial_document(on_cpu))
    assert "device waits for the host" in words(trial_document(replace(on_cpu, gpu="H100")))
