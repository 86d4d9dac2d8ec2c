"""`profkit diff` on recorded pairs, others' reports, runs and odd input."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs
from typer.testing import CliRunner, Result

import profkit
from profkit.commands.cli import app
from profkit.comparison.changes import Changed, Sort
from profkit.comparison.comparison import diff
from profkit.comparison.repeats import Change
from profkit.comparison.reports import side as side_of
from profkit.comparison.text import change_words, headline
from profkit.comparison.timed_change import timings
from tests.comparison.test_diff_pairs import main_kernel, side
from tests.conftest import CORPUS, H200, Cli, needs_corpus, needs_reader, needs_truth, pair_report
from tests.rules.test_bounds import others_report


def others(name: str) -> Path:
    return CORPUS / f"{name}.ncu-rep"


# --- what a reader sees of the recorded pairs


@needs_reader
def test_what_a_reader_sees_of_a_fix(profkit_cli: Cli) -> None:
    result = profkit_cli(
        "diff",
        pair_report("transpose_conflicts", "before"),
        pair_report("transpose_conflicts", "after"),
    )
    shown = " ".join(result.stdout.split())
    assert "transpose 330.9 µs → 145.4 µs (timed) 2.27x faster" in shown
    assert (
        "shared_bank_conflicts resolved (loads 32-way → 1-way, 3.5% of load wavefronts conflict)"
        in shown
    )
    assert re.search(r"predicted speedup 1\.\d+ to [23]\.\d+x, measured 2\.27x", shown)
    assert "mostly fewer mio_throttle stall" in shown
    assert "total −183.2 µs" in shown
    assert "after.cu:25 120.9 µs → 40.60 µs" in shown
    assert all(len(line) <= 100 for line in result.stdout.splitlines())


@needs_reader
@pytest.mark.parametrize("columns", [60, 70, 79])
@pytest.mark.parametrize("name", ["transpose_conflicts", "ffma_gemm", "softmax_passes"])
def test_a_narrow_terminal_has_every_number_and_every_line_of_source(
    name: str, columns: int
) -> None:
    assert shown(name, columns) == shown(name, 120)
    assert shown(name, columns)[1]


@cache
def shown(name: str, width: int) -> tuple[list[str], list[str]]:
    """The numbers, and the lines of source, in a terminal of some columns."""
    files = [str(pair_report(name, which)) for which in ("before", "after")]
    runner = CliRunner(env={"COLUMNS": str(width)})
    text = runner.invoke(app, ["diff", *files, "--all"]).stdout
    assert all(len(line) <= width for line in text.splitlines())
    told, source = text.split("Time by source line")
    places = re.findall(r"^(?:Line +)?(\S+:\d+)", source, re.M)
    return sorted(re.findall(r"\d[\d.,]*", told)), places


def test_times_that_clocks_spoil_are_compared_in_cycles() -> None:
    sides = (
        structs.replace(side_of(side("mma_sync_gemm", which)), timings=timings(None))
        for which in ("before", "after")
    )
    kernel = main_kernel(diff(*sides))
    assert kernel.in_cycles
    before, after = (
        group.median * group.typical.get("sm_clock") for group in (kernel.before, kernel.after)
    )
    assert kernel.speedup == pytest.approx(before / after)
    assert "cycles" in headline(kernel)


def test_a_chain_is_fused_where_its_kernels_are_one(profkit_cli: Cli) -> None:
    shown = profkit_cli(
        "diff", pair_report("fuse_passes", "before"), pair_report("fuse_passes", "after")
    ).stdout
    assert "dram_bandwidth resolved" in shown
    assert "predicted" not in shown  # of the chain, which is no one kernel
    assert "1 SAME, 1 removed" in shown


def test_the_table_that_a_write_up_wants(profkit_cli: Cli, tmp_path: Path) -> None:
    ladder = H200 / "ladder"
    sides = ladder / "tensor_core.ncu-rep", ladder / "swizzled.ncu-rep"
    file = tmp_path / "swizzle.md"
    profkit_cli("diff", *sides, "--ablation", "swizzled tiles", "-o", file)
    text = file.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([A-Z][\w ]+) \| (.*) \|$", text, re.MULTILINE))
    assert text.startswith("## swizzled tiles\n")
    assert rows["Hypothesis"].startswith("shared\\_bank\\_conflicts: ")
    assert "8-way → 1-way, " in rows["Hypothesis"]
    assert re.fullmatch(r"3\.7x \\\[[12]\.\d, \d\d\\\]", rows["Predicted speedup"])
    assert rows["Before"].startswith("431.0 µs ±0.2%, n = 240; ncu duration 424.6 µs")
    assert rows["Measured change"] == "2.102x faster \\[2.098, 2.105\\], timed, interleaved"
    assert "Cliff's delta +1.00 (large)" in rows["Effect size"]
    assert rows["Verdict"].startswith("IMPROVED")
    assert "short\\_scoreboard stall" in rows["Profiling evidence"]
    assert rows["Roofline"].count("of the attainable rate") == 2
    profkit_cli("diff", *sides, "--ablation", "x", "--format", "json", status=2)


# --- others' reports


@needs_reader
@needs_corpus
def test_a_stall_whose_share_rises_is_no_regression_of_a_faster_kernel(profkit_cli: Cli) -> None:
    before, after = (
        others(f"mixes-reconstruction__{name}") for name in ("full_profile", "version2")
    )
    found = profkit.diff(profkit.load(before), profkit.load(after))
    (kernel,) = found.kernels
    assert kernel.change is Change.improved
    assert kernel.speedup == pytest.approx(12.2505 / 6.9308, rel=1e-4)
    assert kernel.attribution is not None
    causes = {cause.key: cause for cause in kernel.attribution.causes}
    assert causes["instructions"].seconds < kernel.attribution.change < 0
    stall = causes["stall_long_scoreboard"]
    assert (stall.before, stall.after) == pytest.approx((1.2, 20.5), abs=0.05)
    assert stall.seconds > 0
    shown = " ".join(profkit_cli("diff", before, after).stdout.split())
    assert "1.77x faster 3.99x fewer instructions executed" in shown
    assert "partly offset by more long_scoreboard stall" in shown
    assert "REGRESSED" not in shown


@needs_corpus
def test_one_percent_is_noise_and_registers_are_reported(profkit_cli: Cli) -> None:
    paths = [others(f"NuKEXC__profile_{name}") for name in ("309861cc", "fastc")]
    found = profkit.diff(*map(profkit.load, paths))
    (kernel,) = found.kernels
    assert kernel.change is Change.same
    registers = next(one for one in kernel.changed if one.name == "registers_per_thread")
    assert (registers.before, registers.after, registers.shown) == (53, 62, True)
    assert "SAME (1.1% slower)" in profkit_cli("diff", *paths).stdout


@needs_corpus
def test_one_section_is_enough_for_times_and_what_it_holds() -> None:
    paths = [others(f"COALDA__{name}_chart") for name in ("uncoalesced", "coalesced")]
    (kernel,) = profkit.diff(*map(profkit.load, paths)).kernels
    assert kernel.change is Change.improved
    assert kernel.speedup == pytest.approx(17.504 / 14.112, rel=1e-3)
    assert {"l2_bytes", "l1_hit_rate"} <= {one.name for one in kernel.changed if one.shown}
    assert kernel.attribution is not None
    assert {"instructions executed", "warp states"} <= set(kernel.attribution.missing)
    (rest,) = [cause for cause in kernel.attribution.causes if cause.key == "rest"]
    assert rest.label == "not attributed"


@needs_corpus
@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        ("KernelBench__matmul_kernel", "IndexSpaces.jl__profile_3176628c", ["GPU", "ncu version"]),
        (
            "ESMM-Research__profile_feb2d349", "nsight-training__manual_nvtx",
            ["GPU", "ncu version"],
        ),
        ("COALDA__coalesced_chart", "NuKEXC__profile_fastc", ["GPU", "ncu version"]),
    ],
)  # fmt: skip
def test_reports_of_other_gpus_and_versions_are_refused_with_each_reason(
    profkit_cli: Cli, before: str, after: str, reasons: list[str]
) -> None:
    result = profkit_cli("diff", others(before), others(after), status=3)
    for reason in reasons:
        assert f"INCOMPARABLE  {reason}:" in result.stdout
    assert "--force-compare" in result.stdout
    forced = profkit_cli("diff", others(before), others(after), "--force-compare", status=None)
    if "matched kernels: none" in forced.stdout:
        assert forced.exit_code == 3
        return
    assert f"! forced despite different {reasons[0]}" in forced.stdout


# --- runs, folders, options, odd input


def test_of_two_sets_what_both_have_is_compared(profkit_cli: Cli) -> None:
    sides = H200 / "sdpa_s512_flash.ncu-repz", H200 / "sdpa_s512_flash_set_basic.ncu-repz"
    compared = profkit_cli("diff", *sides, "--all")
    note = "! collected metrics: set full vs. set basic: only what both have is compared"
    assert note in compared.stdout
    assert "l1_hit_rate, before only" in compared.stdout
    assert "not collected" in compared.stdout
    assert "NEW" not in compared.stdout
    assert "RESOLVED" not in compared.stdout


def test_stalls_of_counters_are_not_compared_with_those_of_warp_samples() -> None:
    full, detailed = (
        profkit.load(H200 / f"sdpa_s512_flash{name}.ncu-repz") for name in ("", "_set_detailed")
    )
    (kernel,) = profkit.diff(full, detailed).kernels
    assert kernel.attribution is not None
    assert "warp states" in kernel.attribution.missing
    assert kernel.change is Change.same


def test_another_launch_shape_with_equal_work_is_the_same_problem(profkit_cli: Cli) -> None:
    """Two kernels of attention by other names, each alone in its report."""
    sides = H200 / "sdpa_s512_flash.ncu-repz", H200 / "sdpa_s512_cudnn.ncu-repz"
    result = profkit_cli("diff", *sides)
    assert "1.47x faster" in result.stdout
    shown = " ".join(result.stdout.split())
    assert "same problem size inferred: equal FLOP" in shown
    assert "131,072 → 50,688 threads" in shown


def test_a_copied_latency_is_the_same_measurement(
    profkit_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A baseline holds a copy of the run's latencies: what was timed in turns still was."""
    monkeypatch.chdir(tmp_path)
    profkit_cli("diff", pair_report("transpose_conflicts", "before"), "--save-baseline", "main")
    against = profkit_cli(
        "diff", pair_report("transpose_conflicts", "after"), "--baseline", "main"
    ).stdout
    direct = profkit_cli(
        "diff",
        pair_report("transpose_conflicts", "before"),
        pair_report("transpose_conflicts", "after"),
    ).stdout
    assert "timed, interleaved" in direct
    assert against.splitlines()[1:] == direct.splitlines()[1:]


def test_interleaved_variants_are_judged_by_their_timing() -> None:
    ladder = H200 / "ladder"
    before, after = (
        profkit.load(ladder / f"{name}.ncu-rep") for name in ("tensor_core", "swizzled")
    )
    (kernel,) = profkit.diff(before, after).kernels
    assert kernel.timed is not None
    assert kernel.timed.design == "interleaved"
    assert kernel.speedup == pytest.approx(431.0 / 205.2, rel=0.01)
    assert kernel.resolved[0].category == "shared_bank_conflicts"


def test_folders_are_paired_by_the_names_of_their_reports(profkit_cli: Cli, tmp_path: Path) -> None:
    for folder, names in (("a", ("one", "two")), ("b", ("one", "three"))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{name}.ncu-repz").symlink_to(H200 / "sdpa_s512_flash.ncu-repz")
    shown = profkit_cli("diff", tmp_path / "a", tmp_path / "b").stdout
    assert shown.startswith("one")
    assert "only in before: two.ncu-repz" in shown
    assert "only in after: three.ncu-repz" in shown

    def written(form: str) -> Result:
        return profkit_cli("diff", tmp_path / "a", tmp_path / "b", "--format", form)

    alone = [
        {"side": "before", "file": "two.ncu-repz"},
        {"side": "after", "file": "three.ncu-repz"},
    ]
    assert json.loads(written("json").stdout)["left_out"] == alone
    for form in ("markdown", "html"):
        text = written(form).stdout
        assert "only in before: two.ncu-repz" in text
        assert "only in after: three.ncu-repz" in text


@needs_reader
def test_source_lines_whose_time_changed_are_in_every_form_that_people_read(
    profkit_cli: Cli,
) -> None:
    """Of a loop whose inner load now hits L1: the line of that load lost the most time."""
    files = pair_report("loop_order", "before"), pair_report("loop_order", "after")
    told = json.loads(profkit_cli("diff", *files, "--format", "json").stdout)
    (kernel,) = told["comparisons"][0]["kernels"]
    first, *rest = kernel["lines"]
    assert (first["file"], first["line_before"], first["line_after"]) == ("after.cu", 26, 25)
    assert "sum += dot(source[column], vector[column]);" in first["text"]
    assert first["before_s"] > 5 * first["after_s"]
    changes = [abs(one["after_s"] - one["before_s"]) for one in (first, *rest)]
    assert changes == sorted(changes, reverse=True)
    for which in ("before", "after"):  # samples of all lines stand for the whole launch at most
        spent = sum(one[f"{which}_s"] for one in (first, *rest))
        assert 0.9 * kernel[which]["median_s"] < spent <= kernel[which]["median_s"] * (1 + 1e-9)
    for form in ("markdown", "html"):
        text = profkit_cli("diff", *files, "--format", form).stdout
        assert "Time by source line" in text
        assert "after.cu:26 → 25" in text


def test_lines_are_looked_up_for_as_many_kernels_as_are_asked_for(profkit_cli: Cli) -> None:
    files = (H200 / "sdpa_s512_math.ncu-repz", H200 / "sdpa_s512_math.ncu-repz")

    def lines(top: str) -> list[object]:
        text = profkit_cli("diff", *files, "--format", "json", "--top", top).stdout
        return [one["lines"] for one in json.loads(text)["comparisons"][0]["kernels"]]

    assert [one is None for one in lines("1")] == [False, *[True] * (len(lines("0")) - 1)]
    assert None not in lines("0")


def test_names_from_a_file(profkit_cli: Cli, tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text("leaky_relu: leaky_scaled_sum\n", encoding="utf-8")
    sides = pair_report("fuse_passes", "before"), pair_report("fuse_passes", "after")
    shown = profkit_cli("diff", *sides, "--match", names).stdout
    assert "leaky_relu → leaky_scaled_sum" in shown
    assert "matched: as asked" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.ncu-rep", "other.ncu-rep"], 5, "no such file"),
        (["--match", "guess"], 2, "--match 'guess' is not auto, name, order, nvtx or a file"),
        (["--kernel", "nothing_like_it"], 2, "no kernel matches"),
    ],
)
def test_failures_are_one_line(
    profkit_cli: Cli, arguments: list[str], code: int, said: str
) -> None:
    report = H200 / "sdpa_s512_flash.ncu-repz"
    given = arguments if arguments[0].endswith("rep") else [str(report), str(report), *arguments]
    result = profkit_cli("diff", *given, status=code)
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@needs_reader
def test_a_file_against_itself_is_said_to_be_one(profkit_cli: Cli, tmp_path: Path) -> None:
    report = H200 / "sdpa_s512_flash.ncu-repz"
    link = tmp_path / "other.ncu-repz"
    link.symlink_to(report)
    for other in (report, link):
        result = profkit_cli("diff", report, other)
        assert result.stderr == f"both sides are the same file: {report}\n"
    apart = profkit_cli("diff", report, H200 / "sdpa_s512_cudnn.ncu-repz")
    assert "same file" not in apart.stderr


def test_timings_are_sent_to_the_verb_that_compares_them(profkit_cli: Cli) -> None:
    files = [H200 / "ladder" / f"length_{length}.json" for length in (128, 256)]
    result = profkit_cli("diff", *files, status=5)
    (line,) = result.stderr.splitlines()
    assert "`profkit compare` two files" in line


def test_numbers_are_read_aloud(profkit_cli: Cli) -> None:
    files = pair_report("tail_effect", "before"), pair_report("tail_effect", "after")
    gate = "metric:grid_size > 1 and registers_per_thread > 2"
    done = profkit_cli("diff", *files, "--fail-on", gate, "--all", status=1)
    told = " ".join(done.stdout.split())
    assert "grid_size 2,128, registers_per_thread 61" in told
    told = profkit_cli(
        "diff", pair_report("one_accumulator", "before"), pair_report("one_accumulator", "after")
    ).stdout
    assert "mostly fewer wait (fixed latency) cycles per instruction" in " ".join(told.split())
    assert "wait wait" not in told


def test_large_factors_are_written_out() -> None:
    def told(before: float, after: float) -> str:
        conflicts = Changed(
            "shared_conflicts", "", "wavefront", Sort.amount, before, after, 1.0, shown=True
        )
        return change_words(conflicts)[2]

    assert told(58_730_000, 7963) == "7,375x less"
    assert told(7963, 58_730_000) == "7,375x"
    assert told(100, 1616) == "16.2x"
    assert told(100, 103) == "+3.0%"


def test_totals_add_up_over_kernels_that_come_and_go() -> None:
    math_backend = profkit.load(H200 / "sdpa_s512_math.ncu-repz")
    flash = profkit.load(H200 / "sdpa_s512_flash.ncu-repz")
    total = profkit.diff(math_backend, flash, force=True).total
    assert total.before + total.removed == pytest.approx(math_backend.summary.total)
    assert total.after + total.added == pytest.approx(flash.summary.total)
    assert math.isclose(
        sum(cause.seconds for cause in total.causes), total.after - total.before, abs_tol=1e-12
    )


def test_the_table_of_a_fusion_is_of_all_its_kernels(profkit_cli: Cli) -> None:
    sides = pair_report("fuse_passes", "before"), pair_report("fuse_passes", "after")
    text = profkit_cli("diff", *sides, "--ablation", "fused").stdout
    first = text[text.index("### before → after") : text.index("### scaled")]
    rows = dict(re.findall(r"^\| ([A-Z][\w ]+) \| (.*) \|$", first, re.MULTILINE))
    assert rows["Measured change"] == "1.692x faster \\[1.691, 1.693\\], timed, interleaved"
    assert rows["Verdict"].startswith("IMPROVED")
    assert "Cliff's delta" in rows["Effect size"]


def test_a_kernel_without_flop_stands_under_the_dram_roof(profkit_cli: Cli) -> None:
    sides = (
        pair_report("transpose_conflicts", "before"),
        pair_report("transpose_conflicts", "after"),
    )
    text = profkit_cli("diff", *sides, "--ablation", "padded").stdout
    told = re.search(r"^\| Roofline \| no FLOP; (\S+)% → (\S+)% of the DRAM roof \|$", text, re.M)
    assert told
    for share, which in zip(told.groups(), ("before", "after"), strict=True):
        busy = side("transpose_conflicts", which).summary.launches[0].get("dram_bandwidth_share")
        assert float(share) / 100 == pytest.approx(busy, rel=0.02)


def test_no_ratio_is_reported_where_nothing_was_compared(profkit_cli: Cli) -> None:
    sides = H200 / "known.ncu-repz", H200 / "sdpa_s512_math.ncu-repz"
    done = profkit_cli("diff", *sides, "--force-compare", status=3)
    assert "faster" not in done.stdout.splitlines()[1]


def test_a_kernel_that_is_not_compared_says_what_would_compare_it(profkit_cli: Cli) -> None:
    sides = [H200 / f"sdpa_{size}_flash.ncu-repz" for size in ("s512", "s2048_d128_causal")]
    refused = profkit_cli("diff", *sides, status=3)
    assert "INCOMPARABLE" in refused.stdout
    assert "--force-compare compares them anyway" in refused.stdout
    forced = profkit_cli("diff", *sides, "--force-compare")
    assert "INCOMPARABLE" not in forced.stdout


# --- what is compared, and what is not


@pytest.mark.parametrize("gates", [(), ("--fail-on", "regression"), ("--force-compare",)])
def test_reports_without_a_common_kernel_are_not_compared(
    profkit_cli: Cli, gates: tuple[str, ...]
) -> None:
    files = H200 / "known.ncu-repz", H200 / "sdpa_s512_flash.ncu-repz"
    result = profkit_cli("diff", *files, *gates, status=3)
    assert "INCOMPARABLE" in result.stdout
    assert not re.search(r"\dx (faster|slower)", result.stdout)


@needs_corpus
def test_a_removed_kernel_is_no_speedup(profkit_cli: Cli) -> None:
    """Two kernels of 12.25 and 12.45 s, one of them again at 6.93 s: 12.25 / 6.93 = 1.77."""
    files = (others(f"mixes-reconstruction__{which}") for which in ("full_profile", "version2"))
    result = profkit_cli("diff", *files, "--format", "json")
    (comparison,) = json.loads(result.stdout)["comparisons"]
    (kernel,) = comparison["kernels"]
    total = comparison["total"]
    assert kernel["speedup"] == pytest.approx(1.77, abs=0.01)
    assert total["speedup"] == pytest.approx(kernel["speedup"])
    assert total["before_s"] == pytest.approx(12.25, abs=0.01)
    assert total["removed_s"] == pytest.approx(12.45, abs=0.01)


@needs_corpus
def test_a_change_of_registers_within_noise_is_the_same_time() -> None:
    reports = [profkit.load(others(f"NuKEXC__profile_{which}")) for which in ("309861cc", "fastc")]
    for there in (reports, reports[::-1]):
        (kernel,) = profkit.diff(*there).kernels
        assert kernel.change is Change.same
        assert not [one for one in kernel.findings if one.is_reported]


@needs_corpus
def test_a_renamed_kernel_is_compared_with_the_noise_of_its_length() -> None:
    """17.5 and 14.1 µs: 3% and 0.4 µs are 6%."""
    reports = [
        profkit.load(others(f"COALDA__{which}_chart")) for which in ("uncoalesced", "coalesced")
    ]
    (kernel,) = profkit.diff(*reports).kernels
    assert kernel.change is Change.improved
    assert kernel.profiled is not None
    assert kernel.profiled.noise == pytest.approx(0.03 + 0.4 / 14.11, abs=1e-3)
    assert kernel.profiled.range[0] < kernel.speedup / 1.05


@needs_truth
def test_no_page_takes_a_problem_for_equal_that_it_refuses_as_another(profkit_cli: Cli) -> None:
    sides = [others_report("fsossi_row_a_thread", side) for side in ("before", "after")]
    for options, status in (((), 3), (("--force-compare",), 0)):
        shown = profkit_cli("diff", *sides, *options, status=status).stdout
        assert "problem size: 8,500 threads vs. 32,768 threads" in " ".join(shown.split())
        assert "same problem size" not in shown


@needs_truth
def test_a_smaller_cause_is_one(profkit_cli: Cli) -> None:
    sides = [others_report("esmm_vectorized", side) for side in ("before", "after")]
    assert "\n1 smaller cause " in profkit_cli("diff", *sides).stdout


@needs_truth
def test_what_is_made_up_for_outweighs_nothing(profkit_cli: Cli) -> None:
    """Warps cost 121.7 µs and the largest gain is 41.1, but the kernel takes 13.9 µs less."""
    sides = [others_report("feather_512_5_6", side) for side in ("before", "after")]
    shown = " ".join(profkit_cli("diff", *sides).stdout.split())
    assert "(−41.10 µs), with others against 3.43x fewer resident warps" in shown
    assert "total −13.86 µs" in shown
