"""`python -m profkit`."""

from profkit.cli import main

if __name__ == "__main__":
    main()
