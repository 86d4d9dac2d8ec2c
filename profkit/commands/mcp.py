"""`profkit mcp`: a server of the Model Context Protocol on stdin and stdout."""

from pathlib import Path


def mcp(root: tuple[Path, ...] = (), allow_run: bool = False) -> None:
    """Serve profkit's verbs to a coding agent, over stdin and stdout.

    Ten tools: doctor, profile, time, try, analyze, explain, diff, source, timeline, next. Files
    are read below --root alone, and programs are run only with --allow-run. Needs the extra `mcp`.

    Options:
      root (DIR): Folder whose files may be read, the first also to run in; repeatable (default: the
        current folder).
      allow_run: Allow profile, time and try, which run programs.

    Examples:
      profkit mcp --root .
      profkit mcp --root runs/ --root targets/ --allow-run
    """
    from profkit.agents.access import Access
    from profkit.core.errors import UsageError
    from profkit.core.extras import require

    require("the MCP server", "mcp")
    import anyio

    from profkit.agents.server import serve

    roots = tuple(folder.resolve() for folder in root or [Path()])
    for folder in roots:
        if not folder.is_dir():
            raise UsageError(f"--root {folder}: not a folder", "name an existing folder")
    anyio.run(serve, Access(roots, allow_run), roots[0])
