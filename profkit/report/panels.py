"""Panels of a launch: titled lists of labeled values, and tables.

Terminal, Markdown and notebook lay out the same panels; numbers are formatted here, once.
"""

import math
from collections.abc import Iterable, Iterator

from profkit.hardware.gpus import Gpu
from profkit.hardware.occupancy import warps_per_block
from profkit.machine_code.operation import WARP
from profkit.report.checks import NOT_CHECKED, NOT_COLLECTED, NOT_HERE, NOT_IN_VERSION
from profkit.report.resources import BUSY
from profkit.report.summary import LaunchSummary, Occupancy, Work
from profkit.ui.document import Facts, Row, Table
from profkit.ui.text import compact, count, extent, kibibytes, literal, number, percent, plural

_ALWAYS = {
    "sm_busy", "issue_busy", "tensor_busy", "l1_busy", "lsu_data_busy", "l2_busy", "dram_busy",
}  # fmt: skip
_ACTIVE = "l1_busy_active"
SECTOR = 32
"""Bytes of a sector, a quarter of an L1 or L2 cache line (Nsight Compute Profiling Guide)."""
_APART = 0.1  # chosen: shares of two units of a cache that a reader takes for a contradiction
_NOTEWORTHY_HALF = 0.01  # share of the half-precision roof, chosen: smaller work is not listed
# Chosen: with them a launch's panels fit one screen at 100 columns; the rest are small.
_PIPES_SHOWN = 4
_STALLS_SHOWN = 8  # as many lines as the panel of utilization beside it
_CLASSES_SHOWN = 6  # two lines at 100 columns
_OPCODES_SHOWN = 9  # two lines at 100 columns
_LEAST_MIX = 0.005  # share of the instructions that is not rounded to 0%


def panels(launch: LaunchSummary) -> tuple[Facts, ...]:
    """All panels of a launch, the most informative first; empty panels are omitted."""
    sections = (
        busy_panel, stalls_panel, tensor_panel, _launch_panel, _access_panel, occupancy_panel,
        _instructions_panel,
    )  # fmt: skip
    return tuple(panel for section in sections if (panel := section(launch)).rows)


def title(launch: LaunchSummary) -> str:
    """Duration and launch configuration in one line."""
    parts = (
        number(launch.duration, "s") if not launch.failed else "counters failed",
        f"grid {extent(launch.grid)}" if launch.grid else "",
        f"block {extent(launch.block)}" if launch.block else "",
        f"launch {launch.index}",
        "/".join(literal(name) for name in launch.launch.nvtx),
        launch.launch.workload.replace("kernel", ""),
    )
    return ", ".join(filter(None, parts))


def _or_missing(panel: Facts, launch: LaunchSummary, name: str, label: str) -> Facts:
    """A panel; without rows, the reason why a quantity is missing."""
    reason = Row(label, "n/a", launch.why_missing(name))
    return panel if panel.rows else Facts(panel.title, (reason,))


def _share_rows(launch: LaunchSummary, rows: Iterable[tuple[str, str, str]]) -> tuple[Row, ...]:
    """Rows of label, share with a bar, and note."""
    return tuple(
        Row(label, _share(launch, name), note, launch.get(name)) for label, name, note in rows
    )


def busy_panel(launch: LaunchSummary) -> Facts:
    """Utilization of each resource, share of its peak over elapsed cycles."""
    skipped = _ALWAYS | {_ACTIVE}
    if not launch.get("fmaheavy_busy") > launch.get("fma_busy"):
        skipped |= {"fmaheavy_busy"}
    pipes = [name for name in BUSY if name not in skipped and launch.get(name) > 0]
    busiest = sorted(pipes, key=launch.get, reverse=True)[:_PIPES_SHOWN]
    shown = [name for name in BUSY if name in _ALWAYS or name in busiest]
    if "l1_busy" not in launch.values and _ACTIVE in launch.values:
        shown[shown.index("l1_busy")] = _ACTIVE
    known = any(name in launch.values for name in shown)
    reasons = dict.fromkeys(launch.why_missing(name) for name in shown if name in launch.missing)
    rows = _share_rows(launch, ((BUSY[name], name, "") for name in shown)) if known else ()
    note = f"n/a: {', '.join(reasons)}" if reasons else ""
    panel = Facts("Utilization, % of peak over elapsed cycles", rows, note)
    return _or_missing(panel, launch, "sm_busy", "utilization")


def stalls_panel(launch: LaunchSummary) -> Facts:
    """Warp states by cycles per issued instruction."""
    states = [
        (stall.reason + ("" if stall.is_wait else " *"), stall.cycles, stall.share)
        for stall in launch.stalls
        if stall.cycles > 0
    ]
    total = sum(cycles for _, cycles, _ in states)
    shown, rest = states[:_STALLS_SHOWN], states[_STALLS_SHOWN:]
    if rest:
        _, cycles, shares = zip(*rest, strict=True)
        shown.append((plural(len(rest), "other"), sum(cycles), sum(shares)))
    rows = [Row(label, f"{cycles:.2f}", percent(share), share) for label, cycles, share in shown]
    rows += [Row("sum", f"{total:.2f}")] if launch.stalls else []
    note = "* not a stall: issuing, or eligible to issue"
    panel = Facts("Warp stalls, cycles per issued instruction", tuple(rows), note)
    return _or_missing(panel, launch, "warp_latency", "warp stalls")


def grids(launch: LaunchSummary) -> tuple[Table, ...]:
    """The tables of a launch."""
    return work_grid(launch), _memory_grid(launch), _shared_grid(launch)


def work_grid(launch: LaunchSummary) -> Table:
    """Operations by precision against their roofs."""
    rows = tuple(_work_row(work, launch.gpu) for work in launch.work if work.operations > 0)
    columns = ("", "Work", "Rate", "Of peak at measured SM clock", "Of datasheet")
    return Table("Arithmetic", columns, rows, "; ".join(_work_notes(launch)))


def _work_row(work: Work, gpu: Gpu) -> tuple[str, ...]:
    unit = "op" if work.precision.endswith("int8") else "FLOP"
    roof = sheet = "n/a"
    if not math.isnan(work.peak):
        roof = f"{percent(work.share)} of {number(work.peak, f'{unit}/s')}"
    if not math.isnan(work.path_peak):
        roof += (
            f"\n{percent(work.path_share)} of mma.sync peak {number(work.path_peak, f'{unit}/s')}"
        )
    if not math.isnan(work.datasheet):
        mark = "" if gpu.is_verified(work.precision) else "?"
        sheet = f"{percent(work.datasheet_share)} of {number(work.datasheet, f'{unit}/s')}{mark}"
    rate = number(work.rate, f"{unit}/s")
    return work.label, number(work.operations, unit), rate, roof, sheet


def _work_notes(launch: LaunchSummary) -> Iterator[str]:
    reasons = {
        work.label: launch.why_missing(
            f"{'ops' if work.precision.endswith('int8') else 'flop'}_{work.precision}"
        )
        for work in launch.work
        if math.isnan(work.operations)
    }
    collectable = (NOT_COLLECTED, NOT_IN_VERSION)
    absent = [label for label, reason in reasons.items() if reason.startswith(collectable)]
    done = [work for work in launch.work if work.operations > 0]
    if {*reasons.values()} <= {NOT_HERE} and not done:
        yield "no floating-point or tensor operations"
    if absent:
        yield f"not collected: {', '.join(absent)}"
    if math.isnan(launch.get("flop_tensor")) and launch.get("tensor_instructions") > 0:
        share = launch.get("tensor_instructions") / launch.get("instructions_executed")
        yield (
            f"tensor-core instructions are {percent(share)} of executed instructions; their FLOP "
            "count is unknown"
        )
    yield from _half_notes(launch)
    if any(work.datasheet > 0 and not launch.gpu.is_verified(work.precision) for work in done):
        yield "? unverified datasheet value"
    if launch.get("flop_tensor_sparse") > 0:
        yield "part of the tensor work used sparse instructions, which dense roofs do not bound"


def _half_notes(launch: LaunchSummary) -> Iterator[str]:
    """What ncu's counters of half precision hold besides arithmetic."""
    moves, claimed = launch.get("flop_fp16_moves"), launch.get("half_share_claimed")
    if not claimed >= _NOTEWORTHY_HALF:
        return
    if moves > 0:
        yield (
            f"excluded: {number(moves, 'FLOP')} of half precision that ncu counts for instructions "
            "that only load a constant or convert"
        )
    if launch.why_missing("flop_fp16") == NOT_CHECKED:
        counted = number(launch.get("flop_fp16_counted"), "FLOP")
        yield (
            f"half precision: 0 to {counted} ({percent(claimed)} of its roof); ncu's "
            "counters include constant loads, which were not separated here"
        )


_SHARED = 0.05  # of the bytes read, chosen: 0.5% where SMs have no data in common (H200)


def _memory_grid(launch: LaunchSummary) -> Table:
    """Bytes, bandwidth, roof and hit rate of each memory level."""
    sheet = launch.gpu.datasheet.peaks["dram"] if launch.gpu.datasheet else None
    dram_roof = _roof(launch, "dram_bandwidth", "")
    bandwidth = launch.get("dram_bandwidth")
    rate = number(bandwidth, "B/s")
    if math.isnan(bandwidth) and "dram_read_bandwidth" in launch.values:
        rate = f"{number(launch.get('dram_read_bandwidth'), 'B/s')} read"
    if sheet is not None and not math.isnan(bandwidth):
        mark = "" if sheet.verified else "?"
        dram_roof += f"\n{percent(bandwidth / sheet.value)} of datasheet{mark}"
    l2_rate, l1_rate = (number(launch.get(f"{level}_bandwidth"), "B/s") for level in ("l2", "l1"))
    l2_roof = _roof(launch, "l2_output_bandwidth", "output ")
    l1_roof = _roof(launch, "l1_writeback_bandwidth", "to registers ")
    l2_hits, l1_hits = (_share(launch, f"{level}_hit_rate") for level in ("l2", "l1"))
    rows = (
        ("DRAM", _traffic(launch, "dram"), rate, dram_roof, ""),
        ("L2", _traffic(launch, "l2"), l2_rate, l2_roof, l2_hits),
        ("L1", number(launch.get("l1_bytes"), "B"), l1_rate, l1_roof, l1_hits),
    )
    known = ", ".join(_intensities(launch))
    notes = [f"arithmetic intensity {known} of DRAM traffic"] if known else []
    output = launch.get("l2_output_bandwidth") / launch.get("l2_output_bandwidth_peak")
    if (busy := launch.get("l2_busy")) - output >= _APART:
        notes.append(f"output is one unit of L2, whose busiest unit is {percent(busy)} busy")
    received = launch.get("l2_read_bytes")
    sent = launch.get("l2_output_bandwidth") * launch.duration
    if sent < (1 - _SHARED) * received:
        notes.append(
            f"L2 output is {number(sent, 'B')}, which L1 caches read as {number(received, 'B')}: "
            "what several SMs read together leaves L2 once"
        )
    reasons = map(launch.why_missing, ("dram_bytes", "l2_bytes", "l1_bytes"))
    columns = ("", "Bytes", "Bandwidth", "Of roof at measured clock", "Hit rate")
    return Table(
        "Memory", columns, rows, "; ".join([*notes, *dict.fromkeys(filter(None, reasons))])
    )


def _intensities(launch: LaunchSummary) -> Iterator[str]:
    """Integer operations of tensor cores, and floating-point operations, per byte of DRAM."""
    integer, moved = launch.get("ops_tensor_int8"), launch.get("dram_bytes")
    if integer > 0 and moved > 0:
        yield f"{number(integer / moved, 'FLOP/B').removesuffix('FLOP/B')}INT8 op/B"
    if (floating := launch.get("arithmetic_intensity")) > 0:
        yield number(floating, "FLOP/B")


def _traffic(launch: LaunchSummary, level: str) -> str:
    """The bytes of a memory level; bytes read and written on the next line."""
    parts = [
        f"{number(launch.get(name), 'B')} {word}"
        for word, name in (("read", f"{level}_read_bytes"), ("written", f"{level}_write_bytes"))
        if name in launch.values
    ]
    total = f"{level}_bytes"
    lines = [number(launch.get(total), "B")] if total in launch.values or not parts else []
    return "\n".join([*lines, ", ".join(parts)] if parts else lines)


def _roof(launch: LaunchSummary, rate: str, label: str) -> str:
    """A rate against its roof; `label` names a rate other than the row's own."""
    value, roof = launch.get(rate), launch.get(f"{rate}_peak")
    if math.isnan(value / roof):
        return "n/a"
    if value == 0 and label:
        return f"{label}none"
    own = f"{label}{number(value, 'B/s')}, " if label else ""
    return f"{own}{percent(value / roof)} of {number(roof, 'B/s')}"


_TENSOR_PATHS = (
    ("mma.sync (hmma)", "tensor_hmma_utilization", "of dense peak"),
    ("wgmma (hgmma)", "tensor_wgmma_utilization", "of dense peak"),
    ("matrix products", "tensor_fp_busy", ""),
    ("integer (imma)", "tensor_int_busy", ""),
    ("FP64 (dmma)", "tensor_fp64_busy", ""),
)


def tensor_panel(launch: LaunchSummary) -> Facts:
    """Tensor core utilization by instruction family."""
    idle = launch.get("flop_tensor") == 0 and not launch.get("ops_tensor_int8") > 0
    paths = () if idle else (path for path in _TENSOR_PATHS if launch.get(path[1]) > 0)
    rows = _share_rows(launch, [("tensor pipe", "tensor_busy", ""), *paths])
    note = "peaks are dense, never sparse"
    if idle:
        shared = "; HFMA2.MMA (constant loads, half-precision arithmetic) runs on this pipe"
        note = "no tensor-core work" + (shared if launch.get("tensor_busy") > 0 else "")
    panel = Facts(
        "Tensor cores, % of peak over elapsed cycles",
        rows if "tensor_busy" in launch.values else (),
        note,
    )
    return _or_missing(panel, launch, "tensor_busy", "tensor pipe")


_SHARED_ACCESSES = {"loads": "load", "stores": "store", "atomics": "atomic", "cp.async": "async"}


def _shared_grid(launch: LaunchSummary) -> Table:
    """Bank conflicts of shared memory by kind of access."""
    counted = "shared_wavefronts_load" in launch.values
    addressed = "shared_wavefronts_executed" in launch.values
    rows = []
    for label, access in _SHARED_ACCESSES.items():
        wavefronts, executed, conflicts, ways = (
            launch.get(f"shared_{kind}_{access}")
            for kind in ("wavefronts", "executed", "conflicts", "ways")
        )
        if wavefronts > 0 or executed > 0:
            total = compact(wavefronts if counted else executed)
            share = _share(launch, f"shared_conflict_share_{access}")
            factor = "n/a" if math.isnan(ways) else f"{ways:.1f}"
            rows.append((label, total, compact(conflicts), share, factor))
    notes = []
    if addressed:
        excess = compact(launch.get("shared_wavefronts_excessive"))
        share = _share(launch, "shared_excessive_share")
        notes.append(f"by instruction addresses: N-way, and {excess} excessive wavefronts, {share}")
    if counted:
        notes.append(
            "conflicts by hardware counter include arbitration between accesses and only part of "
            "cp.async"
        )
    note = "; ".join(notes) if rows else "no shared-memory accesses by loads or stores"
    if not counted and not addressed:
        rows, note = [], launch.why_missing("shared_wavefronts_load")
    columns = ("", "Wavefronts", "Conflicts", "Share", "N-way bank conflict")
    return Table("Shared memory", columns, tuple(rows), note)


def occupancy_panel(launch: LaunchSummary) -> Facts:
    """Occupancy, its limiter and the next higher level."""
    rows = [
        Row(kind, _share(launch, name), literal(launch.why_missing(name)))
        for kind in ("theoretical", "achieved")
        for name in (f"occupancy_{kind}",)
    ]
    if launch.occupancy is not None:
        rows += _limits(launch, launch.occupancy)
    eligible = launch.get("warps_eligible_per_scheduler")
    if not math.isnan(eligible):
        active = launch.get("warps_active_per_scheduler")
        rows.append(Row("per scheduler", f"{active:.2f} warps", f"active; {eligible:.2f} eligible"))
    known = "occupancy_theoretical" in launch.values or launch.occupancy is not None
    panel = Facts("Occupancy", tuple(rows) if known else (), wide=True)
    return _or_missing(panel, launch, "occupancy_theoretical", "occupancy")


def _limits(launch: LaunchSummary, occupancy: Occupancy) -> list[Row]:
    limits, needs = occupancy.limits, occupancy.needs
    labels = {name: name.replace("shared", "shared memory") for name in limits.blocks}
    by_resource = ", ".join(f"{labels[name]} {blocks}" for name, blocks in limits.blocks.items())
    limited = " and ".join(labels[name] for name in occupancy.limiters)
    shared = limits.blocks.get("shared") == limits.resident and "shared" not in occupancy.limiters
    if limited and shared and needs.shared > needs.shared_driver:
        limited += " (also shared memory at this carve-out)"
    if not limited:
        full = launch.get("occupancy_theoretical") >= 1
        limited = "nothing: all warp slots can be filled" if full else "unknown"
    return [
        Row("limited by", "", limited),
        Row("blocks per SM", str(limits.resident), f"max by {by_resource}"),
        *_step(launch, occupancy),
    ]


def _step(launch: LaunchSummary, occupancy: Occupancy) -> list[Row]:
    if occupancy.resident_at_once and occupancy.limiters:
        return [Row("next step", "", "none: all blocks of the grid are resident at once")]
    step, needs = occupancy.step, occupancy.needs
    if step is None:
        return []
    own = kibibytes(launch.get("shared_static") + launch.get("shared_dynamic"))
    words = {
        "registers": "registers per thread from {needs.registers} to {most}",
        "shared": "shared memory per block from {own} to {size}",
        "threads": "threads per block from {needs.threads} to {most} "
        "with the same registers and shared memory",
    }
    changes = [
        words[name].format(needs=needs, most=most, own=own, size=kibibytes(most))
        for name, most in step.changes.items()
    ]
    if step.carveout:
        changes.append("larger shared-memory carve-out (chosen by the driver)")
    share = step.warps / launch.gpu.chip.warps
    return [Row("next step", percent(share), "; ".join(changes))]


def _launch_panel(launch: LaunchSummary) -> Facts:
    """Launch configuration, resources per block, waves and tail."""
    threads, static = launch.get("block_size"), launch.get("shared_static")
    idle = 0 if math.isnan(threads) else warps_per_block(int(threads)) * WARP - int(threads)
    shared = kibibytes(static + launch.get("shared_dynamic"))
    threads_in_all, registers = launch.get("threads"), launch.get("registers_per_thread")
    cluster = launch.get("cluster_size")
    inactive = f"{idle} inactive lanes in each block's last warp" if idle else ""
    per_block = f"per block, {kibibytes(static)} static" if static > 0 else "per block"
    active = percent(launch.get("sm_active_share"))
    rows = {
        "threads": Row("threads", compact(threads_in_all), inactive),
        "registers_per_thread": Row("registers", count(registers), "per thread"),
        "shared_dynamic": Row("shared memory", shared, per_block),
        "cluster_size": Row("cluster", plural(int(cluster), "block") if cluster > 1 else ""),
        "waves": _waves(launch.get("waves"), launch.get("grid_size")),
        "sm_active_share": Row("SM active share", active, "of elapsed cycles"),
    }
    known = tuple(row for name, row in rows.items() if name in launch.values and row.value)
    return _or_missing(Facts("Launch", known), launch, "threads", "launch configuration")


def _waves(waves: float, grid: float) -> Row:
    note = ""
    if waves > 0 and grid > 0:
        slots = round(grid / waves)
        full, rest = divmod(int(grid), slots)
        note = f"{full:,} full, last {percent(rest / slots)} full" if rest else "no partial wave"
        if full == 0:
            note = f"blocks for {percent(waves)} of the GPU's block slots"
    return Row("waves", f"{waves:,.2f}", note)


def _instructions_panel(launch: LaunchSummary) -> Facts:
    """Instruction counts, divergence, spills and mix."""
    rows = []
    if "instructions_executed" in launch.values:
        ipc = launch.get("ipc_active")
        note = "" if math.isnan(ipc) else f"IPC {ipc:.2f} per active SM"
        rows.append(Row("executed", compact(launch.get("instructions_executed")), note))
    if "threads_per_instruction" in launch.values:
        threads = f"{launch.get('threads_per_instruction'):.1f}"
        note = f"of 32; {launch.get('threads_per_instruction_predicated'):.1f} not predicated off"
        rows.append(Row("threads per instruction", threads, note))
    if "branch_uniformity" in launch.values:
        rows.append(Row("uniform branches", percent(launch.get("branch_uniformity"))))
    rows += _spills(launch)
    for label, name, most in (
        ("classes", "instructions_by_class", _CLASSES_SHOWN),
        ("opcodes", "instructions_by_opcode", _OPCODES_SHOWN),
    ):
        if parts := launch.breakdown(name):
            shown = [
                f"{literal(key)} {share:.0%}"
                for key, _, share in parts[:most]
                if share >= _LEAST_MIX
            ]
            rows.append(Row(label, "", ", ".join(shown)))
    panel = Facts("Instructions", tuple(rows), wide=True)
    return _or_missing(panel, launch, "instructions_executed", "instructions")


def _spills(launch: LaunchSummary) -> list[Row]:
    rows = []
    spills = launch.get("spill_instructions")
    if not math.isnan(spills):
        share = percent(spills / launch.get("instructions_executed"))
        note = f"{share} of executed instructions, as marked by the compiler" if spills else ""
        rows.append(Row("register spills", compact(spills), note))
    local, size = launch.get("local_loads") + launch.get("local_stores"), launch.get("local_bytes")
    if local > 0 or (local == 0 and not rows):
        moved = f"; {number(size, 'B')} at L1" if size > 0 else ""
        note = f"loads and stores (spills and local arrays){moved}"
        rows.append(Row("local memory", compact(local), note))
    return rows


def _access_panel(launch: LaunchSummary) -> Facts:
    """Sectors per request of global accesses, and how much of them is used."""
    rows = []
    for kind in ("load", "store"):
        sectors = launch.get(f"global_{kind}_sectors_per_request")
        name = f"global_{kind}_bytes_per_sector"
        used = math.nan if name in launch.impossible else launch.get(name)
        note = "" if math.isnan(used) else f", {percent(used / SECTOR)} of bytes used"
        if not math.isnan(sectors):
            rows.append(Row(f"global {kind}s", f"{sectors:.1f} sectors", f"per request{note}"))
    excess = _share(launch, "global_excessive_share")
    for label, name, unit, note in (
        ("excessive sectors", "global_sectors_excessive", "", excess),
        ("global atomics", "global_atomic_requests", "", "requests"),
        ("cp.async", "async_copy_bytes", "B", "into shared memory"),
        ("TMA loads", "tma_load_bytes", "B", "into shared memory, bypassing L1"),
        ("TMA stores", "tma_store_bytes", "B", "out of shared memory, bypassing L1"),
    ):
        if (value := launch.get(name)) > 0:
            rows.append(Row(label, number(value, unit) if unit else compact(value), note))
    return Facts("Global memory accesses", tuple(rows))


def _share(launch: LaunchSummary, name: str) -> str:
    """A share; an impossible value has a question mark."""
    return percent(launch.get(name)) + ("?" if name in launch.impossible else "")
