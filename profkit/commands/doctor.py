"""`profkit doctor`: can this machine profile, and what to do if not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.commands.formats import PlainFormat
from profkit.commands.options import FORMAT, OutputOption, put, put_view
from profkit.core.errors import EnvironmentProblem


def doctor(
    require_gpu: Annotated[
        bool, typer.Option("--require-gpu", help="End with 4 when no GPU can be profiled here.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where runs would be written.")
    ] = Path("reports"),
    format: Annotated[PlainFormat, FORMAT] = "terminal",
    output: OutputOption = None,
) -> None:
    """Check what profiling needs: GPU, driver, tools, permissions, room.

    Examples:

      profkit doctor

      profkit doctor --require-gpu --format json
    """
    from profkit.capture.doctor import diagnose

    diagnosis = diagnose(out)
    if format == "json":
        from profkit.capture.doctor_view import doctor_json

        put(doctor_json(diagnosis), output)
    else:
        from profkit.capture.doctor_view import doctor_view

        put_view(doctor_view(diagnosis), output)
    if require_gpu and diagnosis.can_profile is None:
        raise EnvironmentProblem(
            "can't tell whether a GPU can be profiled here", "pip install nvidia-ml-py"
        )
    if require_gpu and not diagnosis.can_profile:
        raise EnvironmentProblem("no GPU can be profiled here", "see the checks that fail")
