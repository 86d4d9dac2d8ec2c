"""`profkit doctor`: whether this machine can profile, and remedies."""

from pathlib import Path

from profkit.commands.groups import Output, PlainFormat
from profkit.core.errors import EnvironmentProblem


def doctor(
    require_gpu: bool = False, out: Path = Path("reports"), *, output: Output[PlainFormat]
) -> None:
    """Check GPU, driver, tools, permissions and disk space.

    Each failed check has a remedy.

    Options:
      require_gpu: Exit 4 if no GPU can be profiled here.
      out (--runs DIR): Folder of runs, to check for free space.

    Examples:
      profkit doctor
      profkit doctor --require-gpu --format json
    """
    from profkit.capture.doctor import diagnose, doctor_document

    diagnosis = diagnose(out)
    output.show(diagnosis, lambda: doctor_document(diagnosis))
    if require_gpu and diagnosis.can_profile is None:
        message = "can't tell whether a GPU can be profiled here"
        raise EnvironmentProblem(message, "pip install nvidia-ml-py")
    if require_gpu and not diagnosis.can_profile:
        raise EnvironmentProblem("no GPU can be profiled here", "see the checks that fail")
