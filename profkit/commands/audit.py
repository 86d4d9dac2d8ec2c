"""`profkit audit`: do claimed figures hold against each other and against datasheets?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.formats import NumbersFormat
from profkit.commands.options import NUMBERS_FORMAT, OutputOption, put
from profkit.core.errors import BadInput, UsageError

if TYPE_CHECKING:
    from profkit.audit.audit import Audit

_CONTRADICTED = 1


def audit(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Claims in YAML or JSON: rows, sentences.")
    ],
    gpu: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The GPU of claims that name none: L4, 'A100 80GB SXM'."),
    ] = None,
    format: Annotated[NumbersFormat, NUMBERS_FORMAT] = "terminal",
    output: OutputOption = None,
) -> None:
    """Hold claimed figures against each other and against datasheets; explain contradictions.

    A row has any of: gpu, dtype, B, H, S, D, causal, flop, bytes, median_ms, ci_ms, gflops, gbps,
    intensity, percent_of_peak, bound. A sentence may say the same in words. What can't be checked
    is listed. Exits with 1 where a contradiction was found, with 5 for a file without claims.

    Examples:

      profkit audit claims.yaml

      profkit audit results.json --gpu "H100 SXM" --format markdown
    """
    from profkit.audit.audit import examine
    from profkit.audit.claims import read_claims
    from profkit.audit.view import audit_text
    from profkit.report.gpus import datasheet_named

    if gpu is not None and datasheet_named(gpu) is None:
        raise UsageError(f"--gpu {gpu!r} is not in the table of datasheets", "docs/audit.md")
    claims = read_claims(path)
    found = examine(claims.claims, gpu or "")
    if not found.checked:
        raise _nothing_checked(found, path)
    put(audit_text(claims, found, format, to_file=output is not None), output)
    if found.contradictions:
        raise typer.Exit(_CONTRADICTED)


def _nothing_checked(found: Audit, path: Path) -> BadInput:
    """Figures that none holds anything against are no claims: a file of anything has such."""
    left = [f"{one.claim.where}: {why}" for one in found.outcomes for why in one.unchecked]
    more = f", and {len(left) - 1:,} more" if len(left) > 1 else ""
    return BadInput(
        f"{path}: holds no claim that can be checked ({left[0]}{more})",
        "name the GPU (--gpu), shape and figures by the keys in docs/audit.md",
    )
