"""`profkit plan`: replay passes and time of a capture, without a GPU."""

from profkit.commands.groups import Count, NumbersFormat, Output
from profkit.core.amount import BYTES, TIMES, parse_amount
from profkit.core.errors import UsageError


def plan(
    sections: str | None = None,
    metrics: str | None = None,
    gpu: str | None = None,
    duration: str = "1ms",
    memory: str = "0MB",
    launches: Count = 1,
    *,
    output: Output[NumbersFormat],
) -> None:
    """Count the replay passes of a capture before it is made, without a GPU.

    Each section or group of metrics is listed with the passes that it adds. Time is that of ncu
    alone: passes times the kernel's duration, its saved memory, and ncu's own time as recorded.

    Options:
      sections (--set SET): scout, lean, full, detailed, basic, ...; rules or catalog: what profkit
        reads; or a file of sections and metrics (default: full).
      metrics (NAME,...): These metrics of ncu instead of a set.
      gpu (GPU): A product (H200, A100, RTX 4090) or chip (GH100); default: this machine's.
      duration (TIME): Duration of a launch.
      memory (SIZE): Memory that a launch writes to: ncu restores it before each pass.
      launches (N): Launches to profile.

    Examples:
      profkit plan --gpu H200 --set full
      profkit plan --gpu A100 --set rules --duration 0.4ms --launches 20
      profkit plan --gpu GB202 --metrics dram__bytes_read.sum,lts__t_sectors.sum
    """
    from profkit.analysis import replay_plan

    if sections and metrics:
        raise UsageError("--set and --metrics exclude each other", "a file for --set has both")
    work = replay_plan.Workload(
        parse_amount("--duration", duration, TIMES, "0.4ms or 20us"),
        parse_amount("--memory", memory, BYTES, "512MB or 2GiB"),
        launches,
    )
    subject = replay_plan.subject_of(gpu or _this_gpu())
    if metrics:
        names = dict.fromkeys(name.strip() for name in metrics.split(",") if name.strip())
        parts = {name: [name] for name in names}
        result = replay_plan.replay_plan(subject, "These metrics", parts, work)
    else:
        collected = sections or "full"
        sets = replay_plan.parts_of_set(collected, subject)
        result = replay_plan.replay_plan(subject, f"Set {collected}", sets, work)
    output.show(result, lambda: replay_plan.plan_document(result), dense=True)


def _this_gpu() -> str:
    """The name of this machine's GPU; raises UsageError where there is none."""
    from profkit.capture.gpu import select
    from profkit.core.errors import EnvironmentProblem

    try:
        state = select(None).gpu
    except EnvironmentProblem:
        state = None
    if state is None:
        raise UsageError("this machine has no GPU", "name one to plan for: --gpu H200")
    return state.name
