"""Gates: how they are written, what fails them, and the exit code that follows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import profkit
from profkit.capture.correctness import Declared
from profkit.comparison.comparison import diff
from profkit.comparison.gates import Failure, GateKind, exit_code, failures, parse_gates
from profkit.comparison.matching import Mode
from profkit.comparison.repeats import Change
from profkit.comparison.text import summary
from profkit.comparison.timed_change import Timings
from profkit.core.errors import UsageError
from profkit.report.catalog import catalog
from profkit.timing.latency import analyze_latency
from profkit.timing.latency_file import read_latencies
from tests.comparing import Made, compared, report_of, side_of, work
from tests.conftest import H200


def told(found: tuple[Failure, ...]) -> list[tuple[str, str]]:
    return [(one.gate, one.kernel or "") for one in found]


# --- how gates are written


def test_gates_are_a_list_and_commas_inside_parentheses_are_not_its() -> None:
    written = "regression:5%, inconclusive,metric:max(dram_bytes, l2_bytes) > 1e9,removed"
    gates = parse_gates([written, "new-finding,regression:5%"])
    assert [str(gate) for gate in gates] == [
        "regression:5%",
        "inconclusive",
        "metric:max(dram_bytes, l2_bytes) > 1000000000.0",
        "removed",
        "new-finding",
    ]
    assert gates[0].margin == pytest.approx(0.05)
    assert parse_gates(["regression"])[0].margin == 0
    assert parse_gates([]) == ()
    assert parse_gates(["removed, ,"]) == parse_gates(["removed"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("regresion", "did you mean regression?"),
        ("new_finding", "did you mean new-finding?"),
        ("slower", "regression[:5%], inconclusive, incomparable, new-finding, removed, metric:"),
        ("regression:5", "write regression:5%"),
        ("regression:five%", "write regression:5%"),
        ("regression:-5%", "write regression:5%"),
        ("regression:nan%", "write regression:5%"),
        ("regression:", "without a percentage; write regression:5%"),
        ("regression: ", "without a percentage; write regression:5%"),
        ("inconclusive:3", "takes no value"),
        ("inconclusive:", "takes no value"),
        ("metric:", "without an expression"),
        ("metric:registers_per_thread", "compare it with a value"),
        ("metric:register_per_thread > 3", "did you mean registers_per_thread?"),
        ("metric:before_dram_byte > 3", "did you mean before_dram_bytes?"),
        ("metric:open('x') > 3", "not allowed"),
        ("metric:dram_bytes >", "invalid expression"),
        ("metric:dram_bytes >", "; write a comparison: metric:registers_per_thread > 128"),
        ("metric:(dram_bytes\n+ 1)", "compare it with a value"),
        (f"metric:{'1 + ' * 400}1 > 0", "at most 1,000; write a comparison"),
        ('metric:__import__("os")', "is not allowed in an expression; allowed are quantities, num"),
        ("metric:1 < dram_bytes < 2", "one comparison at a time"),
        ("", "'' names no gate; leave it out, or use regression[:5%], inconclusive"),
        (",", "',' names no gate; leave it out, or use"),
        (" , \n", "names no gate; leave it out"),
    ],
)
def test_what_is_no_gate_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gates([text])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "rule" not in caught.value.message


def test_each_value_names_a_gate() -> None:
    """One of two that is a variable which is not set would else be as if it were not asked."""
    with pytest.raises(UsageError, match="names no gate"):
        parse_gates(["removed", ""])


def test_a_gate_that_is_asked_for_twice_is_one() -> None:
    assert len(parse_gates(["metric:waves>2,metric:waves>2,removed", "removed"])) == 2


def test_no_quantity_is_taken_for_an_earlier_value() -> None:
    assert not [name for name in catalog().quantities if name.startswith("before_")]


# --- regressions


def test_a_regression_fails_beyond_its_margin_with_both_times() -> None:
    found = compared([Made("axpy", [100e-6])], [Made("axpy", [110e-6])])
    (failure,) = failures(found, parse_gates(["regression"]))
    assert (failure.kernel, failure.index) == ("axpy", 0)
    assert failure.why == "100.0 µs → 110.0 µs (ncu): 10.0% slower"
    assert failures(found, parse_gates(["regression:20%"])) == ()
    (above,) = failures(found, parse_gates(["regression:5%"]))
    assert above.why.endswith("10.0% slower, more than 5%")
    assert exit_code([found], [above]) == 1


@given(st.lists(st.floats(1e-6, 1e-2), min_size=1, max_size=4))
@settings(max_examples=settings().max_examples // 2)
def test_a_report_against_itself_fails_no_gate(times: list[float]) -> None:
    kernels = [Made(f"kernel_{at}", [time]) for at, time in enumerate(times)]
    found = compared(kernels, kernels)
    asked = "regression,inconclusive,incomparable,new-finding,removed,metric:waves>before_waves"
    assert failures(found, parse_gates([asked])) == ()
    assert exit_code([found], []) == 0


@given(st.floats(1e-6, 1e-3), st.floats(0.3, 3), st.floats(0, 100))
@settings(max_examples=settings().max_examples // 2)
def test_the_regression_gate_fails_as_the_verdict_and_the_margin_say(
    time: float, factor: float, margin: float
) -> None:
    found = compared([Made("k", [time])], [Made("k", [time * factor])])
    slower = found.kernels[0].change is Change.regressed
    beyond = slower and 1 / found.kernels[0].speedup - 1 > margin / 100
    failed = failures(found, parse_gates([f"regression:{margin}%"]))
    assert bool(failed) == beyond
    assert not failures(
        compared([Made("k", [time])], [Made("k", [time])]), parse_gates(["regression"])
    )


def test_the_total_counts_where_no_kernel_is_a_reason() -> None:
    gates = parse_gates(["regression"])
    before = [Made("axpy", [100e-6])]
    (added,) = failures(compared(before, [*before, Made("quite_new", [50e-6])]), gates)
    assert (added.kernel, added.index) == (None, None)
    assert "100.0 µs → 150.0 µs" in added.why
    assert "including 50.00 µs in added kernels" in added.why
    more_launches = compared(before, [Made("axpy", [100e-6, 100e-6])])
    assert told(failures(more_launches, gates)) == [("regression", "")]
    slower_too = [Made("axpy", [110e-6]), Made("quite_new", [50e-6])]
    assert told(failures(compared(before, slower_too), gates)) == [("regression", "axpy")]
    no_duration = [*before, Made("broken", [math.nan])]
    assert failures(compared(no_duration, [*before, Made("quite_new", [50e-6])]), gates) == ()


def test_the_total_is_of_kernels_that_were_measured_whole() -> None:
    nan = math.nan
    both = Made("axpy", [20e-6])
    gone, came = Made("gone", [50e-6, nan], work(1)), Made("came", [nan, 70e-6], work(3))
    found = compared([both, gone], [both, came])
    assert (found.total.removed, found.total.added, found.total.unmeasured) == (0, 0, 2)
    assert "20.00 µs → 20.00 µs" in summary(found)


def test_the_total_is_of_what_can_be_compared() -> None:
    size, larger = work(1), work(10)
    found = compared(
        [Made("grown", [10e-6], size), Made("axpy", [30e-6]), Made("copy", [50e-6])],
        [Made("grown", [90e-6], larger), Made("axpy", [20e-6]), Made("copy", [50e-6])],
    )
    total = found.total
    assert (total.before, total.after) == pytest.approx((80e-6, 70e-6))
    assert sum(cause.seconds for cause in total.causes) == pytest.approx(-10e-6)
    assert (total.incomparable, total.unmeasured) == (1, 0)
    assert summary(found) == (
        "3 kernels matched   80.00 µs → 70.00 µs (ncu, 2 launches)   1.14x faster   "
        "1 IMPROVED, 1 SAME, 1 INCOMPARABLE, "
        "times exclude 1 kernel that can't be compared"
    )


def test_kernels_of_a_problem_that_one_side_alone_has_are_no_part_of_the_total() -> None:
    def timed(length: int) -> Timings:
        shapes = {"q": f"length={length}"}
        (one, _) = read_latencies(H200 / "pairs" / "transpose_conflicts" / "latency.json").latencies
        told = structs.replace(one, target=Declared(name="attention", shapes=shapes))
        return Timings(f"{length}.json", {"v": analyze_latency(told)})

    short, long = (report_of(Made(name, [1e-5], nvtx=("v",))) for name in ("axpy", "q_w_e"))
    apart = diff(side_of(short, timed(128)), side_of(long, timed(256)), mode=Mode.name)
    assert (len(apart.removed), len(apart.added)) == (1, 1)
    assert (apart.total.removed, apart.total.added, apart.total.incomparable) == (0, 0, 2)
    alike = diff(side_of(short, timed(128)), side_of(long, timed(128)), mode=Mode.name)
    assert alike.total.removed == alike.total.added == pytest.approx(1e-5)
    assert alike.total.incomparable == 0


def test_a_timed_regression_is_the_verdict_on_its_variant() -> None:
    latencies = {
        one.label: analyze_latency(one)
        for one in read_latencies(H200 / "pairs" / "transpose_conflicts" / "latency.json").latencies
    }
    fast = Timings("fast.json", {"v": latencies["after"]})
    slow = Timings("slow.json", {"v": latencies["before"]})
    pieces = [Made("first", [50e-6], nvtx=("v",)), Made("second", [50e-6], nvtx=("v",))]
    report = report_of(*pieces)
    found = diff(side_of(report, fast), side_of(report, slow))
    assert all(kernel.change is Change.same for kernel in found.kernels)
    (failure,) = failures(found, parse_gates(["regression"]))
    assert failure.index is None
    assert "timed, not interleaved" in failure.why
    assert not failures(
        diff(side_of(report, slow), side_of(report, fast)), parse_gates(["regression"])
    )
    alone = report_of(pieces[0])
    (kernel,) = failures(
        diff(side_of(alone, fast), side_of(alone, slow)), parse_gates(["regression"])
    )
    assert (kernel.kernel, kernel.index) == ("first", 0)


# --- what can't be told


def test_scatter_is_inconclusive_and_exits_with_3_where_asked() -> None:
    before = [100e-6, 120e-6, 90e-6, 130e-6, 95e-6, 125e-6]
    found = compared([Made("k", before)], [Made("k", [time * 0.95 for time in before])])
    assert found.kernels[0].change is Change.inconclusive
    failed = failures(found, parse_gates(["inconclusive,regression"]))
    assert told(failed) == [("inconclusive", "k")]
    assert exit_code([found], failed) == 3
    assert exit_code([found], ()) == 0


def test_a_kernel_that_cant_be_compared_exits_with_3() -> None:
    found = compared(
        [Made("k", [1e-4], work(1)), Made("j", [1e-4])],
        [Made("k", [1e-4], work(10)), Made("j", [2e-4])],
    )
    assert exit_code([found], failures(found, parse_gates(["removed"]))) == 3
    failed = failures(found, parse_gates(["incomparable"]))
    assert told(failed) == [("incomparable", "k")]
    assert "problem size: 337,920 threads, 2e+09 FLOP" in failed[0].why
    assert "vs. 3,379,200 threads, 2e+10 FLOP" in failed[0].why
    assert exit_code([found], failures(found, parse_gates(["regression"]))) == 1


def test_of_refused_reports_no_gate_passes() -> None:
    report = report_of(Made("k", [1e-4]))
    other = structs.replace(report, session=structs.replace(report.session, cache_control="none"))
    found = diff(side_of(report), side_of(other))
    assert found.refused
    unchecked = failures(found, parse_gates(["regression,metric:dram_bytes > 0,removed"]))
    assert [one.kind for one in unchecked] == [
        GateKind.regression,
        GateKind.metric,
        GateKind.removed,
    ]
    assert all(one.undecided and "cache control" in one.why for one in unchecked)
    assert exit_code([found], unchecked) == 3
    (failure,) = failures(found, parse_gates(["incomparable"]))
    assert "cache control: all vs. none" in failure.why
    assert exit_code([found], ()) == 3
    forced = diff(side_of(report), side_of(other), force=True)
    assert exit_code([forced], failures(forced, parse_gates(["regression"]))) == 0


GATES = "regression,regression:5%,inconclusive,incomparable,new-finding,removed"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "gate", [*GATES.split(","), "metric:waves > before_waves", "metric:waves >= 0"]
)
def test_no_gate_passes_where_nothing_was_compared(gate: str, force: bool) -> None:
    sides = [side_of(report_of(Made(f"{at}_abc", [1e-4], work(at)))) for at in (1, 7)]
    found = diff(sides[0], sides[1], mode=Mode.name, force=force)
    assert found.refused
    assert math.isnan(found.total.speedup)
    assert failures(found, parse_gates([gate]))
    assert exit_code([found], failures(found, parse_gates([gate]))) in {1, 3}
    assert exit_code([found], ()) == 3


@given(
    st.lists(st.tuples(st.floats(1e-6, 1e-2), st.floats(0.2, 5), st.integers(1, 3)), min_size=1,
             max_size=5),
    st.lists(st.floats(1e-6, 1e-2), max_size=2),
    st.lists(st.floats(1e-6, 1e-2), max_size=2),
)  # fmt: skip
@settings(max_examples=settings().max_examples // 2)
def test_totals_are_of_matched_kernels_and_swap(
    both: list[tuple[float, float, int]], gone: list[float], came: list[float]
) -> None:
    before = [Made(f"k{at}", [time] * count) for at, (time, _, count) in enumerate(both)]
    after = [Made(f"k{at}", [time * by] * n) for at, (time, by, n) in enumerate(both)]
    sides = [
        side_of(report_of(*kernels, *(Made(f"{word}_{at}", [time]) for at, time in enumerate(own))))
        for kernels, word, own in ((before, "gone", gone), (after, "came", came))
    ]
    there, back = (diff(*pair, mode=Mode.name) for pair in (sides, sides[::-1]))
    total = there.total
    assert total.before == pytest.approx(sum(time * count for time, _, count in both))
    assert total.after == pytest.approx(sum(time * by * count for time, by, count in both))
    assert total.speedup == pytest.approx(total.before / total.after)
    assert (total.removed, total.added) == pytest.approx((sum(gone), sum(came)))
    assert back.total.speedup == pytest.approx(1 / total.speedup)
    assert (back.total.removed, back.total.added) == pytest.approx((total.added, total.removed))


def test_more_launches_of_a_kernel_make_it_no_slower() -> None:
    found = compared([Made("k", [1e-4])], [Made("k", [1e-4] * 10), Made("came", [1e-5])])
    assert found.kernels[0].change is Change.same
    assert math.isnan(found.total.speedup)
    assert summary(found) == (
        "1 kernel matched   100.0 µs → 1.000 ms (ncu)   1 launch → 10   1 SAME, 1 added (10.00 µs)"
    )


# --- findings, kernels, quantities


def test_a_finding_that_a_change_brings_fails() -> None:
    pair = H200 / "pairs" / "transpose_conflicts"
    before, after = (profkit.load(pair / f"{one}.ncu-repz") for one in ("before", "after"))
    gates = parse_gates(["new-finding"])
    first, queues = failures(profkit.diff(after, before), gates)
    assert first.why.startswith("shared_bank_conflicts is new, estimated speedup 2.")
    assert "; loads 1-way → 32-way" in first.why
    assert queues.why.startswith("instruction_issue is new, estimated speedup 1.")
    assert failures(profkit.diff(before, after), gates) == ()


def test_kernels_that_are_gone_fail_where_asked() -> None:
    found = compared([Made("axpy", [1e-4]), Made("gone", [2e-5, 2e-5])], [Made("axpy", [1e-4])])
    (failure,) = failures(found, parse_gates(["removed"]))
    assert failure.kernel == "gone"
    assert failure.why == "2 launches before, none after, ncu duration 40.00 µs"


def test_metrics_of_the_later_report_and_of_the_earlier() -> None:
    found = compared(
        [Made("a", [1e-4], {"registers_per_thread": 64, "dram_bytes": 1e6}),
         Made("b", [1e-4], {"registers_per_thread": 200, "dram_bytes": 1e6})],
        [Made("a", [1e-4], {"registers_per_thread": 168, "dram_bytes": 1.05e6}),
         Made("b", [1e-4], {"registers_per_thread": 128, "dram_bytes": 1.2e6}),
         Made("quite_new", [1e-6], {"registers_per_thread": 255, "dram_bytes": 9e6})],
    )  # fmt: skip
    (gate,) = parse_gates(["metric:registers_per_thread > 128"])
    failed = failures(found, [gate])
    assert [(one.kernel, one.why) for one in failed] == [
        ("a", "condition met: registers_per_thread 168"),
        ("quite_new", "condition met: registers_per_thread 255"),
    ]
    (grown,) = failures(found, parse_gates(["metric:dram_bytes > 1.1 * before_dram_bytes"]))
    assert grown.kernel == "b"
    assert grown.why == "condition met: dram_bytes 1.200 MB, before_dram_bytes 1.000 MB"
    assert exit_code([found], [grown]) == 1


def test_numbers_of_failures_are_in_their_units() -> None:
    busy = {"l2_busy": 0.64885, "local_memory_instructions": 1.663e10, "dram_bandwidth": 3.21e12}
    found = compared([Made("a", [1e-4]), Made("gone", [12.4547808])], [Made("a", [1e-4], busy)])
    names = "l2_busy > 0.5 and local_memory_instructions > 1 and dram_bandwidth > 1"
    removed, metric = failures(found, parse_gates([f"removed,metric:{names}"]))
    assert removed.why == "1 launch before, none after, ncu duration 12.45 s"
    assert metric.why == (
        "condition met: l2_busy 64.9%, local_memory_instructions 16.63 G, dram_bandwidth 3.210 TB/s"
    )


def test_a_metric_that_is_missing_fails_and_says_so() -> None:
    nothing = {"dram_bytes": math.nan}
    found = compared([Made("a", [1e-4], nothing)], [Made("a", [1e-4])])
    (failure,) = failures(found, parse_gates(["metric:dram_bytes > before_dram_bytes"]))
    assert failure.why == "not evaluated: before_dram_bytes is missing (not collected)"
    assert failure.kind is GateKind.metric
    assert exit_code([found], [failure]) == 1
    told_anyway = "metric:known(before_dram_bytes) and dram_bytes > before_dram_bytes"
    assert failures(found, parse_gates([told_anyway])) == ()
    (zero,) = failures(found, parse_gates(["metric:sqrt(0 - dram_bytes) > 1"]))
    assert "undefined for" in zero.why
