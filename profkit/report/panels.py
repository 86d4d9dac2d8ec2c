"""What the views of a launch show, in words: titled panels of labelled values.

Terminal, markdown and notebook lay the same panels out; a number is formatted here, once.
"""

from __future__ import annotations

import math

from profkit.report.occupancy import WARP, warps_per_block
from profkit.report.quantities import NOT_CHECKED, NOT_COLLECTED, NOT_HERE, NOT_IN_VERSION
from profkit.report.resources import BUSY
from profkit.report.summary import LaunchSummary, Occupancy, Work
from profkit.ui.text import compact, count, extent, kibibytes, literal, number, percent, plural
from profkit.ui.view import Grid, Panel, Row

_ALWAYS = {
    "sm_busy", "issue_busy", "tensor_busy", "l1_busy", "lsu_data_busy", "l2_busy", "dram_busy",
}  # fmt: skip
_ACTIVE = "l1_busy_active"
SECTOR = 32
_HALF_WORTH_SAYING = 0.01
_PIPES_SHOWN = 4
_STALLS_SHOWN = 8
_CLASSES_SHOWN = 6
_OPCODES_SHOWN = 9


def panels(launch: LaunchSummary) -> tuple[Panel, ...]:
    """All panels of a launch, the most telling first; those that would be empty are left out."""
    made = (
        busy_panel(launch),
        stalls_panel(launch),
        tensor_panel(launch),
        launch_panel(launch),
        access_panel(launch),
        occupancy_panel(launch),
        instructions_panel(launch),
    )
    return tuple(panel for panel in made if panel.rows)


def title(launch: LaunchSummary) -> str:
    """Time and shape of a launch in one line."""
    parts = [
        number(launch.duration, "s") if not launch.failed else "counters failed",
        f"grid {extent(launch.grid)}" if launch.grid else "",
        f"block {extent(launch.block)}" if launch.block else "",
        f"launch {launch.index}",
        "/".join(literal(name) for name in launch.launch.nvtx),
        "" if launch.launch.workload == "kernel" else launch.launch.workload,
    ]
    return ", ".join(filter(None, parts))


def busy_panel(launch: LaunchSummary) -> Panel:
    """How busy each resource is, share of elapsed cycles."""
    heading = "Busy, share of elapsed cycles"
    pipes = [
        name for name in BUSY if name not in _ALWAYS and name != _ACTIVE and launch.get(name) > 0
    ]
    if not launch.get("fmaheavy_busy") > launch.get("fma_busy"):
        pipes = [name for name in pipes if name != "fmaheavy_busy"]
    busiest = sorted(pipes, key=launch.get, reverse=True)[:_PIPES_SHOWN]
    shown = [name for name in BUSY if name in _ALWAYS or name in busiest]
    if "l1_busy" not in launch.values and _ACTIVE in launch.values:
        shown[shown.index("l1_busy")] = _ACTIVE
    if not any(name in launch.values for name in shown):
        return Panel(heading, (_absent(launch, "sm_busy", "busy shares"),))
    rows = tuple(Row(BUSY[name], _share(launch, name), share=launch.get(name)) for name in shown)
    reasons = dict.fromkeys(launch.why_missing(name) for name in shown if name in launch.missing)
    return Panel(heading, rows, note=f"n/a: {', '.join(reasons)}" if reasons else "")


def stalls_panel(launch: LaunchSummary) -> Panel:
    """Warp states by cycles for each issued instruction."""
    heading = "Warp stalls, cycles per issued instruction"
    if not launch.stalls:
        return Panel(heading, (_absent(launch, "warp_latency", "warp stalls"),))
    present = [stall for stall in launch.stalls if stall.cycles > 0]
    shown, rest = present[:_STALLS_SHOWN], present[_STALLS_SHOWN:]
    rows = [
        Row(
            stall.reason + ("" if stall.is_wait else " *"),
            f"{stall.cycles:.2f}",
            percent(stall.share),
            share=stall.share,
        )
        for stall in shown
    ]
    if rest:
        share = sum(stall.share for stall in rest)
        cycles = sum(stall.cycles for stall in rest)
        rows.append(
            Row(
                "1 other" if len(rest) == 1 else f"{len(rest)} others",
                f"{cycles:.2f}",
                percent(share),
                share=share,
            )
        )
    total = sum(stall.cycles for stall in present)
    rows.append(Row("sum", f"{total:.2f}"))
    return Panel(heading, tuple(rows), note="* no loss: issuing, or another warp was picked")


def work_grid(launch: LaunchSummary) -> Grid:
    """Operations by precision against their roofs."""
    rows = [_work_row(work) for work in launch.work if work.operations > 0]
    known = [work for work in launch.work if not math.isnan(work.operations)]
    unknown = [work for work in launch.work if math.isnan(work.operations)]
    open_questions = [work for work in unknown if _reason_of(launch, work) != NOT_HERE]
    notes = []
    absent = [work.label for work in unknown if _was_not_collected(launch, work)]
    if not rows and not open_questions:
        notes.append("no floating-point or tensor operations")
    if absent:
        notes.append(f"not collected: {', '.join(absent)}")
    if math.isnan(launch.get("flop_tensor")) and launch.get("tensor_instructions") > 0:
        share = launch.get("tensor_instructions") / launch.get("instructions_executed")
        notes.append(f"tensor-core instructions are {percent(share)} of all; their work is unknown")
    moves, claimed = launch.get("flop_fp16_moves"), launch.get("half_share_claimed")
    if moves > 0 and claimed >= _HALF_WORTH_SAYING:
        notes.append(
            f"ncu also counts {number(moves, 'FLOP')} of half precision in instructions that only "
            "load a constant or convert; left out"
        )
    if launch.why_missing("flop_fp16") == NOT_CHECKED and claimed >= _HALF_WORTH_SAYING:
        notes.append(
            f"half precision: between 0 and {number(launch.get('flop_fp16_counted'), 'FLOP')} "
            f"({percent(claimed)} of its roof); ncu's counters count constant loads too, and they "
            "were not told apart here"
        )
    if any(not work.verified and work.operations > 0 and work.datasheet > 0 for work in known):
        notes.append("? datasheet figure from memory, not looked up")
    if launch.get("flop_tensor_sparse") > 0:
        notes.append("part of the tensor work used sparse instructions: dense roofs don't bound it")
    return Grid(
        "Arithmetic",
        ("", "Work", "Rate", "Of peak at held clock", "Of datasheet"),
        tuple(rows),
        "; ".join(notes),
    )


def _work_row(work: Work) -> tuple[str, ...]:
    unit = "op" if work.precision.endswith("int8") else "FLOP"
    roof = "n/a"
    if not math.isnan(work.peak):
        roof = f"{percent(work.share)} of {number(work.peak, f'{unit}/s')}"
    if not math.isnan(work.path_peak):
        roof += f"\n{percent(work.path_share)} of mma.sync's {number(work.path_peak, f'{unit}/s')}"
    sheet = "n/a"
    if not math.isnan(work.datasheet):
        mark = "" if work.verified else "?"
        sheet = f"{percent(work.datasheet_share)} of {number(work.datasheet, f'{unit}/s')}{mark}"
    return (
        work.label,
        number(work.operations, unit),
        number(work.rate, f"{unit}/s"),
        roof,
        sheet,
    )


def _was_not_collected(launch: LaunchSummary, work: Work) -> bool:
    return _reason_of(launch, work).startswith((NOT_COLLECTED, NOT_IN_VERSION))


def _reason_of(launch: LaunchSummary, work: Work) -> str:
    kind = "ops" if work.precision.endswith("int8") else "flop"
    return launch.why_missing(f"{kind}_{work.precision}")


def grids(launch: LaunchSummary) -> tuple[Grid, ...]:
    """The tables of a launch."""
    return (work_grid(launch), memory_grid(launch), shared_grid(launch))


def memory_grid(launch: LaunchSummary) -> Grid:
    """Bytes, bandwidth, roof and hit rate of each memory level."""
    sheet = launch.gpu.datasheet.peaks["dram"] if launch.gpu.datasheet else None
    dram_roof = _of_roof(launch, "dram_bandwidth", "")
    bandwidth = launch.get("dram_bandwidth")
    rate = number(bandwidth, "B/s")
    if math.isnan(bandwidth) and "dram_read_bandwidth" in launch.values:
        rate = f"{number(launch.get('dram_read_bandwidth'), 'B/s')} read"
    if sheet is not None and not math.isnan(bandwidth):
        mark = "" if sheet.verified else "?"
        dram_roof += f"\n{percent(bandwidth / sheet.value)} of datasheet{mark}"
    rows = [
        (
            "DRAM",
            _both(launch, "dram_bytes", "dram_read_bytes", "dram_write_bytes"),
            rate,
            dram_roof,
            "",
        ),
        (
            "L2",
            _both(launch, "l2_bytes", "l2_read_bytes", "l2_write_bytes"),
            number(launch.get("l2_bandwidth"), "B/s"),
            _of_roof(launch, "l2_output_bandwidth", "output"),
            _share(launch, "l2_hit_rate"),
        ),
        (
            "L1",
            _both(launch, "l1_bytes", "", ""),
            number(launch.get("l1_bandwidth"), "B/s"),
            _of_roof(launch, "l1_writeback_bandwidth", "to registers"),
            _share(launch, "l1_hit_rate"),
        ),
    ]
    missing = [
        reason
        for name in ("dram_bytes", "l2_bytes", "l1_bytes")
        if (reason := launch.why_missing(name))
    ]
    intensity = launch.get("arithmetic_intensity")
    notes = [f"{number(intensity, 'FLOP/B')} of DRAM traffic"] if intensity > 0 else []
    notes += dict.fromkeys(missing)
    return Grid(
        "Memory",
        ("", "Bytes", "Bandwidth", "Of roof at held clock", "Hit rate"),
        tuple(rows),
        "; ".join(notes),
    )


def _both(launch: LaunchSummary, total: str, read: str, write: str) -> str:
    parts = [
        f"{number(launch.get(name), 'B')} {word}"
        for name, word in ((read, "read"), (write, "written"))
        if name in launch.values
    ]
    lines = [number(launch.get(total), "B")] if total in launch.values or not parts else []
    return "\n".join([*lines, ", ".join(parts)]) if parts else lines[0]


def _of_roof(launch: LaunchSummary, rate: str, what: str) -> str:
    """A rate against its roof; `what` names a rate that is not the row's own."""
    share, roof = launch.get(rate) / launch.get(f"{rate}_peak"), launch.get(f"{rate}_peak")
    if math.isnan(share):
        return "n/a"
    own = f"{what} {number(launch.get(rate), 'B/s')}, " if what else ""
    return f"{own}{percent(share)} of {number(roof, 'B/s')}"


def tensor_panel(launch: LaunchSummary) -> Panel:
    """What the tensor cores did, by instruction family."""
    heading = "Tensor cores"
    if "tensor_busy" not in launch.values:
        return Panel(heading, (_absent(launch, "tensor_busy", "tensor pipe"),))
    busy = Row(
        "pipe busy",
        _share(launch, "tensor_busy"),
        "of the cycles",
        share=launch.get("tensor_busy"),
    )
    if launch.get("flop_tensor") == 0 and not launch.get("ops_tensor_int8") > 0:
        shared = "; HFMA2.MMA moves and half arithmetic run on this pipe"
        note = "no tensor-core work" + (shared if launch.get("tensor_busy") > 0 else "")
        return Panel(heading, (busy,), note=note)
    rows = [busy]
    for label, name, note in (
        ("mma.sync (hmma)", "tensor_hmma_utilization", "of its peak"),
        ("wgmma (hgmma)", "tensor_wgmma_utilization", "of its peak"),
        ("matrix products", "tensor_fp_busy", "pipe busy"),
        ("integer (imma)", "tensor_int_busy", "pipe busy"),
        ("FP64 (dmma)", "tensor_fp64_busy", "pipe busy"),
    ):
        if launch.get(name) > 0:
            rows.append(Row(label, _share(launch, name), note, share=launch.get(name)))
    return Panel(heading, tuple(rows), note="peaks are dense ones, never sparse")


_SHARED_ACCESSES = {
    "loads": "load",
    "stores": "store",
    "atomics": "atomic",
    "cp.async": "async",
}


def shared_grid(launch: LaunchSummary) -> Grid:
    """Bank conflicts of shared memory, each kind of access apart."""
    columns = ("", "Wavefronts", "Conflicts", "Share", "Ways by addresses")
    counted = "shared_wavefronts_load" in launch.values
    addressed = "shared_wavefronts_executed" in launch.values
    if not counted and not addressed:
        return Grid("Shared memory", columns, (), launch.why_missing("shared_wavefronts_load"))
    rows = tuple(
        _conflicts(launch, label, access, counted=counted)
        for label, access in _SHARED_ACCESSES.items()
        if max(_known(launch, f"shared_{kind}_{access}") for kind in ("wavefronts", "executed")) > 0
    )
    if not rows:
        return Grid("Shared memory", columns, (), "no shared-memory accesses by loads or stores")
    notes = []
    if addressed:
        notes.append(
            f"a better layout would avoid {compact(launch.get('shared_wavefronts_excessive'))} "
            f"wavefronts, {_share(launch, 'shared_excessive_share')}, by instruction addresses"
        )
    if counted:
        notes.append(
            "the counted conflicts hold waits for other accesses too, and not all of cp.async"
        )
    return Grid("Shared memory", columns, rows, "; ".join(notes))


def _conflicts(launch: LaunchSummary, label: str, access: str, *, counted: bool) -> tuple[str, ...]:
    ways = launch.get(f"shared_ways_{access}")
    return (
        label,
        compact(launch.get(f"shared_{'wavefronts' if counted else 'executed'}_{access}")),
        compact(launch.get(f"shared_conflicts_{access}")),
        _share(launch, f"shared_conflict_share_{access}"),
        "n/a" if math.isnan(ways) else f"{ways:.1f}",
    )


def _known(launch: LaunchSummary, name: str) -> float:
    return launch.values.get(name, 0.0)


def occupancy_panel(launch: LaunchSummary) -> Panel:
    """Occupancy, its limiter and the way to the next step."""
    heading = "Occupancy"
    if "occupancy_theoretical" not in launch.values and launch.occupancy is None:
        return Panel(heading, (_absent(launch, "occupancy_theoretical", "occupancy"),))
    rows = []
    for label, name in (
        ("theoretical", "occupancy_theoretical"),
        ("achieved", "occupancy_achieved"),
    ):
        rows.append(Row(label, _share(launch, name), _reason(launch, name)))
    if launch.occupancy is not None:
        rows += _limits(launch, launch.occupancy)
    eligible = launch.get("warps_eligible_per_scheduler")
    if not math.isnan(eligible):
        active = launch.get("warps_active_per_scheduler")
        rows.append(Row("per scheduler", f"{active:.2f} warps", f"{eligible:.2f} ready to issue"))
    return Panel(heading, tuple(rows), wide=True)


_LIMITERS = {
    "registers": "registers",
    "shared": "shared memory",
    "warps": "warps",
    "blocks": "blocks",
    "barriers": "barriers",
}


def _limits(launch: LaunchSummary, occupancy: Occupancy) -> list[Row]:
    limits = occupancy.limits
    by = ", ".join(f"{_LIMITERS[name]} {blocks}" for name, blocks in limits.blocks.items())
    limited = " and ".join(_LIMITERS[name] for name in occupancy.limiters)
    shared = limits.blocks.get("shared") == limits.resident and "shared" not in occupancy.limiters
    if limited and shared and occupancy.needs.shared > occupancy.needs.shared_driver:
        limited += " (shared memory too, at this carve-out)"
    if not limited:
        full = launch.get("occupancy_theoretical") >= 1
        limited = "nothing, every warp slot can be filled" if full else "unknown"
    return [
        Row("limited by", "", limited),
        Row("blocks per SM", str(limits.resident), f"by {by}"),
        *_step(launch, occupancy),
    ]


def _step(launch: LaunchSummary, occupancy: Occupancy) -> list[Row]:
    if occupancy.resident_at_once and occupancy.limiters:
        return [Row("next step", "", "none: all blocks of the grid are resident at once")]
    step = occupancy.step
    if step is None:
        return []
    needs = occupancy.needs
    own = launch.get("shared_static") + launch.get("shared_dynamic")
    words = {
        "registers": f"registers {needs.registers} to {step.changes.get('registers')} a thread",
        "shared": f"shared memory {kibibytes(own)} to "
        f"{kibibytes(step.changes.get('shared', 0))} a block",
        "threads": f"block {needs.threads} to {step.changes.get('threads')} threads "
        "with the same registers and shared memory",
    }
    changes = [words[name] for name in step.changes]
    if step.carveout:
        changes.append("more of L1 set aside for shared memory (the driver's choice)")
    share = step.warps / launch.gpu.warps_per_sm
    return [Row("next step", percent(share), "; ".join(changes))]


def launch_panel(launch: LaunchSummary) -> Panel:
    """Shape, resources of a block, waves and tail."""
    rows = []
    if "threads" in launch.values:
        rows.append(Row("threads", compact(launch.get("threads")), _block_note(launch)))
    if "registers_per_thread" in launch.values:
        rows.append(Row("registers", count(launch.get("registers_per_thread")), "a thread"))
    if "shared_dynamic" in launch.values:
        rows.append(
            Row(
                "shared memory",
                kibibytes(launch.get("shared_static") + launch.get("shared_dynamic")),
                _static_note(launch),
            )
        )
    if launch.get("cluster_size") > 1:
        rows.append(Row("cluster", plural(int(launch.get("cluster_size")), "block")))
    if "waves" in launch.values:
        rows.append(_waves(launch.get("waves"), launch.get("grid_size")))
    if "sm_active_share" in launch.values:
        rows.append(Row("SMs with work", percent(launch.get("sm_active_share")), "of the cycles"))
    if not rows:
        return Panel("Launch", (_absent(launch, "threads", "launch shape"),))
    return Panel("Launch", tuple(rows))


def _static_note(launch: LaunchSummary) -> str:
    static = launch.get("shared_static")
    return f"a block, {kibibytes(static)} static" if static > 0 else "a block"


def _block_note(launch: LaunchSummary) -> str:
    threads = launch.get("block_size")
    if math.isnan(threads):
        return ""
    idle = warps_per_block(int(threads)) * WARP - int(threads)
    return f"{idle} of each block's last warp idle" if idle else ""


def _waves(waves: float, grid: float) -> Row:
    text = f"{waves:,.2f}"
    if math.isnan(grid) or waves == 0:
        return Row("waves", text)
    slots = round(grid / waves)
    full, rest = divmod(int(grid), slots)
    if full == 0:
        return Row("waves", text, f"blocks for {percent(waves)} of the chip's slots")
    if rest == 0:
        return Row("waves", text, "no partial wave")
    return Row("waves", text, f"{full:,} full, the last {percent(rest / slots)}")


def instructions_panel(launch: LaunchSummary) -> Panel:
    """Instruction counts, divergence, spills and mix."""
    rows = []
    if "instructions_executed" in launch.values:
        ipc = launch.get("ipc_active")
        note = "" if math.isnan(ipc) else f"{ipc:.2f} a cycle and active SM"
        rows.append(Row("executed", compact(launch.get("instructions_executed")), note))
    if "threads_per_instruction" in launch.values:
        note = f"of 32; {launch.get('threads_per_instruction_predicated'):.1f} not predicated off"
        rows.append(
            Row("threads per instruction", f"{launch.get('threads_per_instruction'):.1f}", note)
        )
    if "branch_uniformity" in launch.values:
        rows.append(Row("uniform branches", percent(launch.get("branch_uniformity"))))
    rows += _spills(launch)
    classes = launch.breakdown("instructions_by_class")
    if classes:
        rows.append(Row("classes", "", _mix(classes, _CLASSES_SHOWN)))
    opcodes = launch.breakdown("instructions_by_opcode")
    if opcodes:
        rows.append(Row("opcodes", "", _mix(opcodes, _OPCODES_SHOWN)))
    if not rows:
        return Panel("Instructions", (_absent(launch, "instructions_executed", "instructions"),))
    return Panel("Instructions", tuple(rows), wide=True)


def _mix(parts: list[tuple[str, float, float]], shown: int) -> str:
    seen = [part for part in parts[:shown] if part[2] >= 0.005]
    return ", ".join(f"{literal(key)} {share:.0%}" for key, _, share in seen)


def _spills(launch: LaunchSummary) -> list[Row]:
    rows = []
    spills = launch.get("spill_instructions")
    if not math.isnan(spills):
        share = spills / launch.get("instructions_executed")
        note = f"{percent(share)} of all, as the compiler marked them" if spills else ""
        rows.append(Row("register spills", compact(spills), note))
    local = launch.get("local_loads") + launch.get("local_stores")
    if local > 0 or (local == 0 and not rows):
        note = "loads and stores: spills and local arrays"
        moved = launch.get("local_bytes")
        if moved > 0:
            note = f"{number(moved, 'B')} at L1; {note}"
        rows.append(Row("local memory", compact(local), note))
    return rows


def access_panel(launch: LaunchSummary) -> Panel:
    """How well global accesses use their sectors."""
    rows = []
    for label, suffix in (("loads", "load"), ("stores", "store")):
        sectors = launch.get(f"global_{suffix}_sectors_per_request")
        if math.isnan(sectors):
            continue
        name = f"global_{suffix}_bytes_per_sector"
        used = math.nan if name in launch.impossible else launch.get(name)
        note = "" if math.isnan(used) else f", {percent(used / SECTOR)} used"
        rows.append(Row(f"global {label}", f"{sectors:.1f} sectors", f"a request{note}"))
    if launch.get("global_sectors_excessive") > 0:
        rows.append(
            Row(
                "avoidable sectors",
                compact(launch.get("global_sectors_excessive")),
                _share(launch, "global_excessive_share"),
            )
        )
    if launch.get("global_atomic_requests") > 0:
        rows.append(
            Row("global atomics", compact(launch.get("global_atomic_requests")), "requests")
        )
    for label, name, note in (
        ("cp.async", "async_copy_bytes", "into shared memory"),
        ("TMA loads", "tma_load_bytes", "into shared memory, past L1"),
        ("TMA stores", "tma_store_bytes", "out of shared memory, past L1"),
    ):
        if launch.get(name) > 0:
            rows.append(Row(label, number(launch.get(name), "B"), note))
    return Panel("Global memory accesses", tuple(rows))


def _share(launch: LaunchSummary, name: str) -> str:
    """A share; one that can't be is marked."""
    return percent(launch.get(name)) + ("?" if name in launch.impossible else "")


def _reason(launch: LaunchSummary, name: str) -> str:
    return literal(launch.why_missing(name)) if name not in launch.values else ""


def _absent(launch: LaunchSummary, name: str, what: str) -> Row:
    return Row(what, "n/a", launch.why_missing(name))
