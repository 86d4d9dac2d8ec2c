"""A timeline's kernels as launches of a report without counters: CUPTI activity needs none."""

import math
from collections.abc import Iterator

from profkit.hardware.gpus import Gpu, gpu_of, sm_limits
from profkit.hardware.occupancy import BlockNeeds
from profkit.report.counter_free import launch_limits
from profkit.report.reader import Launch
from profkit.report.session import Host, Session
from profkit.report.summary import LaunchSummary, ReportSummary, groups
from profkit.timeline.events import Events, LaunchConfiguration, TimelineGpu
from profkit.timeline.nesting import around

_NS = 1e9  # nanoseconds per second
_NOT_RECORDED = Session(
    created=None, ncu_version="", cuda_version="", driver_version="", command="", options={},
    clock_control="", cache_control="", replay_mode="", assumed=frozenset(),
    host=Host(name="", os="", processor="", addresses=()),
)  # fmt: skip


def launches_of_timeline(events: Events) -> ReportSummary:
    """The kernels of a timeline, with durations, launch configurations and NVTX ranges."""
    launches = tuple(_launches(events))
    return ReportSummary(
        str(events.path), _NOT_RECORDED, len(launches), launches, groups(launches), ()
    )


def _launches(events: Events) -> Iterator[LaunchSummary]:
    kernels = events.kernels
    nesting = around(events, kernels.call)
    devices = {gpu.device: gpu_of(_device(gpu)) for gpu in events.gpus}
    unknown = gpu_of({})
    shapes = [
        {gpu: _values(shape, gpu) for gpu in {*devices.values(), unknown}}
        for shape in events.configurations
    ]
    rows = zip(
        kernels.name.tolist(),
        kernels.configuration.tolist(),
        kernels.stream.tolist(),
        nesting.path.tolist(),
        ((kernels.end - kernels.start) / _NS).tolist(),
        strict=True,
    )
    for index, (name, shape, stream, path, duration) in enumerate(rows):
        kernel = events.kernel_names[name]
        gpu = devices.get(events.streams[stream].device, unknown)
        launch = Launch(index, kernel.name, kernel.label, "kernel", nesting.paths[path], (), {}, {})
        values = {**shapes[shape][gpu], "duration": duration}
        yield LaunchSummary(launch, gpu, values, {}, {})


def _device(gpu: TimelineGpu) -> dict[str, str | float]:
    limits = sm_limits(gpu.cc)
    device: dict[str, str | float] = {
        "name": gpu.name, "cc_major": gpu.cc[0], "cc_minor": gpu.cc[1], "sm_count": gpu.sm_count,
        "memory_bytes": gpu.memory_bytes,
    }  # fmt: skip
    if limits is None:
        return device
    chip = limits.chip
    return device | {
        "warps_per_sm": chip.warps, "blocks_per_sm": chip.blocks, "shared_per_sm": chip.shared,
        "registers_per_sm": chip.registers, "schedulers_per_sm": chip.schedulers,
    }  # fmt: skip


def _values(shape: LaunchConfiguration, gpu: Gpu) -> dict[str, float]:
    """The quantities of a launch that its configuration gives, by the catalog's names."""
    threads, blocks = math.prod(shape.block), math.prod(shape.grid)
    limits = sm_limits(gpu.cc)
    reserved = limits.reserved_shared if limits else 0
    shared = shape.shared_static + shape.shared_dynamic + reserved
    values: dict[str, float] = {
        "grid_size": blocks, "block_size": threads, "threads": blocks * threads,
        "registers_per_thread": shape.registers, "shared_static": shape.shared_static,
        "shared_dynamic": shape.shared_dynamic, "shared_driver": reserved,
        "shared_per_block": shared, "sm_count": gpu.sm_count,
    }  # fmt: skip
    for axis, extent, other in zip("xyz", shape.grid, shape.block, strict=True):
        values |= {f"grid_{axis}": extent, f"block_{axis}": other}
    needs = BlockNeeds(threads, shape.registers, shared, reserved, 0)
    most = launch_limits(needs, gpu)
    resident = min(most.values(), default=0)
    if resident > 0 and gpu.sm_count > 0:
        values["waves"] = blocks / (resident * gpu.sm_count)
    return {name: float(value) for name, value in (values | dict(most)).items()}
