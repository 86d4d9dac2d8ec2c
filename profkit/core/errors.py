"""The failures that profkit reports, with the exit codes of the command."""

from collections.abc import Iterator
from contextlib import contextmanager


class ProfkitError(Exception):
    """A failure reported in one line: what, why and the remedy.

    `remedy` is the next step for the user, a phrase or a command; empty when there is none.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message

    def __reduce__(self) -> tuple[type["ProfkitError"], tuple[str, str]]:
        return type(self), (self.message, self.remedy)


class UsageError(ProfkitError):
    """Invalid options or arguments."""

    exit_code = 2


class NothingMatches(UsageError):
    """A filter selects nothing of a report."""


class BadInput(ProfkitError):
    """An invalid input file: absent, damaged, empty or of another kind."""

    exit_code = 5


class EnvironmentProblem(ProfkitError):
    """This machine lacks what the command needs: GPU, permission, tool, memory or disk space."""

    exit_code = 4


class TargetFailed(ProfkitError):
    """The profiled program failed: it crashed, timed out or returned a wrong result."""

    exit_code = 6


@contextmanager
def refusal(message: str, kind: type[ProfkitError], remedy: str = "") -> Iterator[None]:
    """What the system refuses within is a failure of this kind, with the system's reason."""
    try:
        yield
    except OSError as error:
        raise kind(f"{message} ({error.strerror})", remedy) from None


@contextmanager
def inside(path: object, remedy: str = "") -> Iterator[None]:
    """What is wrong with the input read within is said of this file, with this remedy, or its own,
    or that to check it."""
    try:
        yield
    except BadInput as error:
        error.message = f"{path}: {error.message}"
        error.remedy = remedy or error.remedy or "check the file"
        raise
