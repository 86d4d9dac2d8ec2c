"""`profkit audit`: claimed figures checked against each other and datasheets."""

import typer

from profkit.commands.groups import NumbersFormat, Output
from profkit.commands.kinds import Claims
from profkit.core.errors import BadInput, UsageError

_CONTRADICTED = 1


def audit(path: Claims, gpu: str | None = None, *, output: Output[NumbersFormat]) -> None:
    """Check claimed figures against each other and datasheets.

    Claims are sentences, or rows with any of: gpu, dtype, B, H, S, D, causal, flop, bytes,
    median_ms, ci_ms, gflops, gbps, intensity, percent_of_peak, bound. Figures that can't be checked
    are listed. Exits with 1 on a contradiction, with 5 for a file without claims.

    Arguments:
      path (FILE): Claims (YAML, JSON): rows of figures, or sentences.

    Options:
      gpu (NAME): GPU of claims that name none: L4, 'A100 80GB SXM'.

    Examples:
      profkit audit claims.yaml
      profkit audit results.json --gpu "H100 SXM" --format markdown
    """
    from profkit.audit.audit import examine
    from profkit.audit.claims import read_claims
    from profkit.audit.view import audit_document, audit_result
    from profkit.hardware.gpus import datasheet_named

    if gpu is not None and datasheet_named(gpu) is None:
        raise UsageError(
            f"--gpu {gpu!r}: not in the datasheet table", "see docs/reference/claims.md"
        )
    claims = read_claims(path)
    result = examine(claims.claims, gpu or "")
    if not result.checked:  # figures that no rule applies to are no claims
        reasons = [f"{row.claim.where}: {why}" for row in result.outcomes for why in row.unchecked]
        more = f", and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
        raise BadInput(
            f"{path}: no claim that can be checked ({reasons[0]}{more})",
            "name the GPU (--gpu), shape and figures by the keys in docs/reference/claims.md",
        )
    file = audit_result(claims, result)
    output.show(file, lambda: audit_document(file, result), dense=True)
    if result.contradictions:
        raise typer.Exit(_CONTRADICTED)
