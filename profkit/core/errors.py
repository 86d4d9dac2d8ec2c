"""Every failure profkit reports on purpose, each with the exit code that its command ends with."""


class ProfkitError(Exception):
    """A failure that is told in one line: what, where and what to do next.

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
    """The command was asked for something that it can't mean."""

    exit_code = 2


class NothingMatches(UsageError):
    """A filter leaves nothing of a report."""


class BadInput(ProfkitError):
    """A file that can't be believed: absent, damaged, empty or of another kind."""

    exit_code = 5


class EnvironmentProblem(ProfkitError):
    """This machine can't do what was asked: no GPU, no permission, no tool, no room."""

    exit_code = 4


class TargetFailed(ProfkitError):
    """The profiled program failed: it crashed, timed out or gave a wrong result."""

    exit_code = 6
