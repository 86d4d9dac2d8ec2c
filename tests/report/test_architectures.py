"""Quantities on every architecture and ncu version, against the raw counters of others' reports."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import profkit
from profkit.analysis.report import Kernel
from profkit.machine_code.opcodes import tensor_operations
from profkit.report.catalog import catalog
from profkit.report.source_lines import executed_code
from tests.conftest import CORPUS, Cli, h200, needs_corpus, needs_reader

V5 = "blackwell-kernels__v5_swizzle"


def path_of(name: str) -> Path:
    return CORPUS / f"{name}.ncu-repz"


@cache
def corpus(name: str) -> profkit.Report:
    return profkit.load(path_of(name), check_half_from=2.0)


def counter(kernel: Kernel, name: str) -> float:
    """A counter as ncu recorded it, in ncu's unit."""
    number = kernel.recorded()[name][1]
    assert isinstance(number, int | float)
    return float(number)


@pytest.mark.parametrize("name", ["known", "sdpa_s512_math", "sdpa_s512_efficient"])
def test_shares_that_old_versions_lack_are_derived_as_new_ones_report_them(name: str) -> None:
    report = h200(name)
    values = {
        name: report.kernels[name].to_numpy()
        for name in ("duration", "sm_active_share", "lsu_data_busy")
    }
    columns = {**report._raw.columns, **values}
    # Longer than the passes that derived shares come from differ by.
    long_enough = values["duration"] > 50e-6
    for quantity in ("l1_busy", "sm_active_share"):
        reported, *derived = catalog().quantities[quantity].alternatives
        for way in derived:
            if all(metric in columns for metric in way.formula.names):
                expected = reported.formula(columns)[long_enough]
                assert way.formula(columns)[long_enough] == pytest.approx(expected, rel=0.03)


@needs_corpus
@pytest.mark.parametrize(
    "name", ["Cartoonizer__gtx1660_7C", "lammps__output", "speedy_scan__profile"]
)
def test_old_reports_have_l1_and_active_shares(name: str) -> None:
    kernel = corpus(name).kernel(0)
    share = counter(kernel, "sm__cycles_active.avg") / (
        counter(kernel, "gpc__cycles_elapsed.avg.per_second") * kernel.duration
    )
    assert kernel["sm_active_share"] == pytest.approx(share, rel=0.005)
    of_active = counter(kernel, "l1tex__throughput.avg.pct_of_peak_sustained_active") / 100
    assert kernel["l1_busy"] == pytest.approx(of_active * share, rel=0.02)


@needs_corpus
@pytest.mark.parametrize(
    ("name", "launch"),
    [("fused-linear__profile_report", 2), ("Cartoonizer__gtx1660_7C", 0), ("HomCmprsr__report", 0)],
)
def test_the_data_stage_of_a_turing_takes_two_cycles_a_wavefront(name: str, launch: int) -> None:
    kernel = corpus(name).kernel(launch)
    # L1 does nothing else there that takes as long.
    assert kernel["lsu_data_busy"] == pytest.approx(kernel["l1_busy"], rel=0.02)


@needs_corpus
@pytest.mark.parametrize(
    "name", [V5, "fused-linear__profile_report", "HomCmprsr__report", "lammps__output"]
)
def test_no_l1_stage_is_busier_than_l1(name: str) -> None:
    for launch in corpus(name).summary.launches:
        assert launch.get("lsu_data_busy") <= launch.get("l1_busy")


@needs_corpus
def test_blackwells_tensor_pipes_are_seen() -> None:
    kernel = corpus("accelsim-test__algo64").kernel(0)
    name = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
    assert kernel["tensor_busy"] == pytest.approx(counter(kernel, name) / 100)
    assert kernel["tensor_busy"] > 0.1
    assert counter(kernel, name.replace("tensor", "tc")) == 0


@needs_corpus
def test_consumer_blackwells_counters_are_known() -> None:
    kernel = corpus(V5).kernel(0)
    work = counter(kernel, "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum")
    assert kernel["flop_tensor_bf16"] == kernel["flop_tensor"] == work == 8_858_370_048
    assert kernel["flop_tensor_hmma"] == work
    assert kernel["flop"] > work
    assert kernel["dram_read_bytes"] == counter(kernel, "dram__bytes_op_read.sum")
    assert kernel["dram_bytes"] == kernel["dram_read_bytes"] + kernel["dram_write_bytes"]
    (point,) = corpus(V5).roofline(levels=["dram"]).points
    assert point.precision == "tensor_bf16"
    assert point.rate == pytest.approx(work / kernel.duration)


def operations(kernel: Kernel, kind: str) -> float:
    executed = executed_code(kernel._action, catalog().lines["instructions_executed"].metric)
    assert executed is not None
    counted = tensor_operations(executed)
    assert counted is not None
    return counted[kind]


@needs_reader
@pytest.mark.parametrize("name", ["sdpa_s512_flash", "sdpa_s512_efficient", "sdpa_s512_cudnn"])
def test_machine_code_does_the_counted_tensor_work(name: str) -> None:
    kernel = h200(name).kernel(0)
    assert operations(kernel, "fp16") == kernel["flop_tensor_fp16"] == 17_179_869_184
    assert operations(kernel, "hmma") == kernel["flop_tensor_hmma"]
    assert operations(kernel, "bf16") == kernel["flop_tensor_bf16"] == 0


@needs_reader
@pytest.mark.parametrize("name", ["sdpa_s2048_d128_causal_flash", "sdpa_s2048_d128_causal_cudnn"])
def test_machine_code_does_the_counted_tensor_work_in_bfloat16(name: str) -> None:
    kernel = h200(name).kernel(0)
    assert operations(kernel, "bf16") == kernel["flop_tensor_bf16"] > 7e10


@needs_reader
def test_tensor_work_is_read_off_the_machine_code_where_counters_lack_it() -> None:
    kernel = h200("sdpa_s512_flash_set_detailed").kernel(0)
    assert not [name for name in kernel.recorded() if name.startswith("sm__ops_path_tensor")]
    assert kernel["flop_tensor"] == kernel["flop_tensor_hmma"] == 17_179_869_184


@needs_reader
@needs_corpus
def test_tensor_work_is_read_off_the_machine_code_of_other_chips() -> None:
    assert operations(corpus(V5).kernel(0), "bf16") == 8_858_370_048
    a40 = profkit.load(CORPUS / "IndexSpaces.jl__profile_3176628c.ncu-rep", check_half_from=2.0)
    (kernel,) = (kernel for kernel in a40 if kernel["tensor_busy"] > 0)
    # IMMA.8816: 8 x 8 x 16 products and sums.
    assert kernel["ops_tensor_int8"] == 2048 * kernel["tensor_instructions"] > 1e12
    assert kernel["flop_tensor"] == 0


@needs_corpus
def test_no_point_leaves_tensor_work_out_unsaid() -> None:
    report = corpus("fused-linear__profile_report")
    gemm = report.kernel(2)
    assert gemm["tensor_busy"] > 0.05
    assert "flop_tensor" in gemm.missing
    found = report.roofline()
    assert not [point for point in found.points if point.launch == 2]
    (why,) = [one.why for one in found.outside if one.launch == 2]
    assert why.startswith("work unknown: not collected")


@needs_reader
@needs_corpus
def test_a_percentage_is_one_whatever_unit_its_file_gives() -> None:
    kernel = corpus("lammps__output").kernel(0)
    assert kernel.recorded()["smsp__sass_average_branch_targets_threads_uniform.pct"] == (
        "branches",
        100.0,
    )
    assert kernel["branch_uniformity"] == 1.0


@needs_corpus
def test_bank_conflicts_are_known_without_counters_of_what_did_not_happen() -> None:
    kernel = corpus("speedy_scan__profile").kernel(0)
    conflicts = [
        counter(kernel, f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{kind}.sum")
        for kind in ("ld", "st", "atom")
    ]
    assert kernel["shared_conflicts"] == sum(conflicts) == 6631
    assert kernel["shared_conflict_share"] == pytest.approx(6631 / (1_090_538 + 435_944))


@pytest.mark.parametrize("name", ["known"])
def test_a_copy_reads_nothing_again(name: str) -> None:
    kernel = h200(name).kernel(0)
    assert kernel.name.startswith("copy_coalesced")
    assert kernel["l2_hit_rate"] > 0.5
    assert kernel["l2_read_hit_rate"] < 0.01
    assert kernel["l2_sm_read_hit_rate"] < 0.01


@needs_corpus
def test_reads_of_sms_that_hit_are_counted_on_old_versions() -> None:
    kernel = corpus("speedy_scan__profile").kernel(0)
    hits, misses = (
        counter(kernel, f"lts__t_sectors_srcunit_tex_op_read_lookup_{end}.sum")
        for end in ("hit", "miss")
    )
    assert kernel["l2_sm_read_hit_rate"] == pytest.approx(hits / (hits + misses))


@needs_corpus
@pytest.mark.parametrize("format", ["json", "markdown", "html"])
def test_shareable_output_names_no_home_folder(
    profkit_cli: Cli, tmp_path: Path, format: str
) -> None:
    target = tmp_path / f"report.{format}"
    profkit_cli("analyze", path_of("MiSTIC__profileHIGGS"), "--format", format, "-o", target)
    assert not re.search(r"/home/\w|\bbwd29\b", target.read_text(encoding="utf-8"))


@needs_corpus
def test_the_host_is_one_line_whatever_ncu_recorded_of_its_processor() -> None:
    assert corpus("speedy_scan__profile").session.host.processor == (
        "11th Gen Intel(R) Core(TM) i7-11700 @ 2.50GHz"
    )


@needs_corpus
def test_code_is_distinguished_from_the_kernels_start() -> None:
    report = profkit.load(CORPUS / "mixes-reconstruction__version2.ncu-rep", check_half_from=2.0)
    view = report.kernel(0).source_view()
    code = report.kernel(0).code(view)
    # The first address of launch__function_pcs, over 100 KB behind the lowest sampled one.
    start = 0xB00C60500
    assert min(row.address for row in view.instructions) < start
    assert code.offset(start) == "+0x0000"
    assert code.offset(start + 0x40) == "+0x0040"
    assert code.offset(start - 0x10) == "-0x0010"


def test_no_label_of_a_plot_is_cut_at_the_edge() -> None:
    from matplotlib.text import Text

    from profkit.roofline.plot import figure_of

    figure = figure_of([h200("sdpa_s512_math").roofline()], title="W" * 90)
    figure.set_dpi(200)
    figure.canvas.draw()
    labels = figure.findobj(lambda item: isinstance(item, Text) and item.get_gid())
    assert len(labels) > 4
    for text in [*labels, *figure.texts]:
        assert text.get_window_extent().x1 <= figure.bbox.x1, text.get_text()
