"""The program: `profkit`, or `python -m profkit`."""

import sys


def main() -> None:
    """Run the command line; an interrupt while it is still being imported ends it quietly too."""
    try:
        from profkit.commands.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
