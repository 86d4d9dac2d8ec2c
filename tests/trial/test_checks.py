"""Laws of the comparison of results."""

import math
import os
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from profkit.trial.checks import faulty, judged, lost, missing_output, spread
from profkit.trial.run import Extent, Perturbation, Result, masked, run_program
from profkit.trial.trial_file import Changes

NUMBERS = st.floats(-1e6, 1e6).filter(lambda number: number == 0 or abs(number) > 1e-6)
ROWS = st.lists(st.lists(NUMBERS, min_size=1, max_size=3), min_size=1, max_size=30)


def result(rows: list[list[float]], output: str = "") -> Result:
    return Result((), 1.0, results={"losses": rows}, output=output)


@given(ROWS)
def test_equal_results_are_the_same(rows: list[list[float]]) -> None:
    judgment = judged([result(rows)], [], [result(rows)], {"nothing"})
    assert judgment is not None
    assert judgment.is_same
    assert judgment.difference == 0


@given(ROWS, st.floats(1e-3, 0.5))
def test_a_scaled_result_differs_by_the_factor(rows: list[list[float]], share: float) -> None:
    scaled = [[value * (1 + share) for value in row] for row in rows]
    judgment = judged([result(rows)], [], [result(scaled)], {"nothing"})
    assert judgment is not None
    if any(value for row in rows[:5] for value in row):
        assert math.isclose(judgment.difference, share, rel_tol=1e-6) or judgment.difference > share
        assert not judgment.is_same


@given(ROWS)
def test_missing_results_are_never_the_same(rows: list[list[float]]) -> None:
    gone = Result((), 1.0, results={})
    judgment = judged([result(rows)], [], [gone], {"precision"})
    assert judgment is not None
    assert not judgment.is_same


def test_a_line_at_the_end_is_none_of_what_runs_lack_that_were_ended_before() -> None:
    numbers = {"number 1 of served #": [[3.0, 0.0]], "number 1 of p# # ms": [[7.5, 0.1]]}
    early = {"number 1 of served #": [[3.0, 0.0]]}
    whole = Result((), 1.0, results=numbers, is_whole=True)
    ended, quiet = (Result((), 1.0, results=each, stopped=True) for each in (early, {}))
    assert faulty([whole, ended]) == ""
    judgment = judged([whole, ended], [], [ended], {"rounding"})
    assert judgment is not None
    assert judgment.is_same
    assert judged([whole, ended], [], [quiet], {"rounding"}) is None  # nothing is compared
    assert "vanish" in faulty([whole, Result((), 1.0, results=early, is_whole=True)])


@given(ROWS, st.floats(1e-4, 0.5))
def test_what_unchanged_runs_differ_by_is_allowed(rows: list[list[float]], share: float) -> None:
    other = [[value * (1 + share) for value in row] for row in rows]
    unchanged = [result(rows), result(other)]
    judgment = judged(unchanged, [], [result(other)], {"nothing"})
    assert judgment is not None
    assert judgment.is_same
    assert spread(unchanged) <= max(share * 1.001, judgment.difference)


@pytest.mark.parametrize(
    ("line", "results"),
    [
        ("epoch 2 loss 0.25, 6.2 s", [2, 0.25]),
        ("[10:11:12,123] 128.5 samples/s, min loss 0.5", [0.5]),
        ("mem 12.3 GB, the model's accuracy 0.91", [0.91]),
        ("took 5.2s", []),
        ("wall-clock: 6.31", []),
        ("wallet 6.5", [6.5]),
        ("time per step: 5, loss 0.5", []),
        ("Time  0.123 ( 0.120)  Data  0.001 ( 0.002)  Loss 0.5", []),
        ("{'train_runtime': 5.2, 'train_steps_per_second': 3.1}", []),
    ],
)
def test_times_are_no_results_but_what_stands_beside_them(line: str, results: list[float]) -> None:
    command = (sys.executable, "-c", f"print({line!r})")
    end = run_program(command, (), Extent(), environment={**os.environ}, timeout=60.0)
    assert [row[0][0] for row in end.results.values() if row[0]] == results


@given(st.integers(0, 10**6), st.floats(-1e9, 1e9))
def test_numbers_of_a_line_are_masked(whole: int, real: float) -> None:
    assert masked(f"step {whole}: loss {real:.6f}") == "step #: loss #"
    assert masked(f"step {whole}: loss {real:.3e}") == "step #: loss #"


def test_a_line_that_is_missing_is_named_but_for_warnings() -> None:
    unchanged = [result([[1.0]], f"step 1 loss {n}\nsaved\nUserWarning: slow\n") for n in (1, 2)]
    assert missing_output(unchanged, result([[1.0]], "step 1 loss 3.5\nsaved\n")) == ""
    assert missing_output(unchanged, result([[1.0]], "step 1 loss nan\n")) == "saved"


def test_advice_to_set_what_a_switch_sets_is_no_lost_output() -> None:
    advice = "You should set `torch.set_float32_matmul_precision('medium' | 'high')` (a library)\n"
    unchanged = [result([[1.0]], f"{advice}saved\n")]
    assert missing_output(unchanged, result([[1.0]], "saved\n")) == ""
    assert missing_output(unchanged, result([[1.0]], advice)) == "saved"


@pytest.mark.parametrize(
    ("series", "changes", "is_same"),
    [
        ("losses", "rounding", True),
        ("losses", "nothing", False),
        ("parameters, group 1", "rounding", False),
    ],
)
def test_where_tf32_is_allowed_its_rounding_is(
    series: str, changes: Changes, is_same: bool
) -> None:
    unchanged, changed = (
        Result((), 1.0, results={series: [[1 + error]]}, features=frozenset({"tf32"}))
        for error in (0, 2**-10)  # two of its rounding errors
    )
    judgment = judged([unchanged], [], [changed], {changes})
    assert judgment is not None
    assert judgment.is_same is is_same


@given(st.floats(-1e3, 1e3), st.floats(-0.0499, 0.0499))
def test_a_rounding_of_printed_decimals_is_no_difference(value: float, error: float) -> None:
    series = 'number 1 of "loss #"'
    unchanged, changed, other = (
        Result((), 1.0, printed={series: [[float(f"{number:.1f}"), 0.1]]})
        for number in (value, value + error, value + 0.5)
    )
    judgment = judged([unchanged], [], [changed], {"nothing"})
    assert judgment is not None
    assert judgment.difference == 0
    apart = judged([unchanged], [], [other], {"nothing"})
    assert apart is not None
    assert apart.difference > 0


def generated(*sequences: list[float]) -> Result:
    return Result((), 1.0, results={"tokens": sequences})


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (generated([5, 6, 7, 8], [9, 9, 1, 1]), True),
        (generated([5, 6, 7, 0], [9, 9, 9, 9]), True),  # as late as a rounding error
        (generated([1, 2, 3, 4], [5, 5, 5, 5]), False),  # another text from its start
        (generated(), False),
    ],
)
def test_generated_text_is_compared_up_to_its_first_other_token(
    other: Result, *, is_same: bool
) -> None:
    unchanged = generated([5, 6, 7, 8], [9, 9, 1, 1])
    moved = replace(generated([5, 6, 0, 0], [9, 9, 1, 1]), perturbed="rounding")
    judgment = judged([unchanged], [moved], [other], {"rounding"})
    assert judgment is not None
    assert judgment.is_same == is_same


@pytest.mark.parametrize(("printed", "is_same"), [([9.0, 0.0], True), ([9.5, 0.1], False)])
def test_printed_tokens_are_no_numbers(printed: list[float | None], is_same: bool) -> None:
    unchanged, other = (
        replace(generated([1, 2, 3, 4]), printed={'number 1 of "first #"': [value] * 6})
        for value in ([5.0, printed[1]], printed)
    )
    judgment = judged([unchanged], [], [other], {"precision"})
    assert judgment is not None
    assert judgment.is_same is is_same


@pytest.mark.parametrize(("parts", "is_faulty"), [(0, True), (1, True), (2, False), (3, False)])
def test_results_are_compared_until_unchanged_runs_part(parts: int, is_faulty: bool) -> None:
    """Rounding that differs from run to run parts them soon; other random numbers do at once."""
    rows = [[1.0 + 0.1 * n] for n in range(6)]
    other = [[value * (2 if n >= parts else 1)] for n, (value,) in enumerate(rows)]
    unchanged = [result(rows), result(other)]
    assert ("not seeded" in faulty(unchanged)) is is_faulty
    wrong = result([[1.1 * value] for (value,) in rows])
    judgment = judged(unchanged, [], [wrong], {"rounding"})
    assert judgment is not None
    assert judgment.is_same is is_faulty  # held to what it is by itself
    for late in (math.nan, 1e12):
        spoiled = result([*rows[:3], [late] if late < math.inf else None, *rows[4:]])  # type: ignore[list-item]
        judgment = judged(unchanged, [], [spoiled], {"rounding"})
        assert judgment is not None
        assert not judgment.is_same


def test_parameters_that_end_as_nan_are_lost() -> None:
    series = "parameters, group 1"
    ends = [Result((), 1.0, results={series: [[end]]}) for end in (1.0, 2.0, None)]
    assert lost(ends[0], ends[1]) == lost(ends[2], ends[2]) == ""
    assert lost(ends[0], ends[2]) == series


def test_no_rounding_makes_zeros_right() -> None:
    unchanged = Result((), 1.0, results={"losses": [[1.0]] * 6})
    moved = Result((), 1.0, results={"losses": [[1.4]] * 6}, perturbed="rounding")
    zeros = Result((), 1.0, results={"losses": [[0.0]] * 6})
    judgment = judged([unchanged], [moved], [zeros], {"rounding"})
    assert judgment is not None
    assert not judgment.is_same


@pytest.mark.parametrize(("kind", "is_same"), [("precision", True), ("rounding", False)])
def test_what_lower_precision_changes_is_held_against_rounded_weights(
    kind: Perturbation, is_same: bool
) -> None:
    """Accuracies of a first step are those of chance, and differ by more than losses."""
    unchanged, moved, lower = (
        Result((), 1.0, results={"accuracy": [[accuracy]] * 6}) for accuracy in (0.10, 0.12, 0.14)
    )
    judgment = judged([unchanged], [replace(moved, perturbed=kind)], [lower], {"precision"})
    assert judgment is not None
    assert judgment.is_same is is_same


def updates(*moved: float, **about: Any) -> Result:
    return Result((), 1.0, results={"updates by optimizer 1": [moved]}, **about)


@pytest.mark.parametrize(
    ("moved", "feature", "changes", "is_same"),
    [
        ((1.1, -1.1, 0.9, -1), "", "rounding", True),
        ((1, -1, 0, 0), "", "rounding", False),
        ((1, -1, 0, 0), "dropout", "rounding", True),
        ((1, -1, 0, 0), "", "precision", True),
        ((0, 0, 0, 0), "dropout", "rounding", False),
        ((-1, 1, -1, 1), "tf32", "precision", False),
    ],
)
def test_updates_are_compared_as_far_as_they_are_known(
    moved: tuple[float, ...], feature: str, changes: Changes, is_same: bool
) -> None:
    features = frozenset({feature})
    unchanged = updates(1, -1, 1, -1, features=features)
    judgment = judged([unchanged], [], [updates(*moved, features=features)], {changes})
    assert judgment is not None
    assert judgment.is_same is is_same


def test_updates_that_a_rounding_error_moves_far_say_nothing() -> None:
    """Adam takes equal steps by the sign of gradients that are all rounding error."""
    unchanged, perturbed = updates(1, -1), updates(1, 1, perturbed="rounding")
    assert judged([unchanged], [perturbed], [updates(-1, 1)], {"rounding"}) is None
    assert spread([unchanged, updates(1, 1)]) == 0


def test_updates_are_not_acquitted_by_one_of_several_perturbed_runs() -> None:
    unchanged, wrong = updates(1, -1, 1, -1), updates(-1, 1, -1, 1)
    runs = [updates(*row, perturbed="rounding") for row in ((1.05, -1, 1, -1), (1, 1, 1, -1))]
    judgment = judged([unchanged], runs, [wrong], {"rounding"})
    assert judgment is not None
    assert not judgment.is_same


def test_updates_by_other_random_numbers_are_those_of_another_draw() -> None:
    unchanged, other = updates(1, -1, 0, 0), updates(0, 0, 1, -1)
    drawn = updates(0, 0, -1, 1, perturbed="random")
    assert judged([unchanged], [drawn], [other], {"random"}) is None
    assert judged([unchanged], [], [], {"rounding"}) is None
