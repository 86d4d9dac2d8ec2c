"""The pytest fixture `profkit_time`: a test that fails where a call has become slower.

    def test_softmax(profkit_time):
        profkit_time(softmax, x, reference=torch.softmax)

Loaded by every pytest of an environment that has profkit: nothing is imported until a test asks for
the fixture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from profkit.callables.run import Run


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--profkit-save` and `--profkit-store`."""
    group = parser.getgroup("profkit")
    group.addoption(
        "--profkit-save", action="store_true", help="store times as baselines, and test none"
    )
    group.addoption(
        "--profkit-store",
        type=Path,
        metavar="DIR",
        help="the history with the baselines (.profkit/history)",
    )


@pytest.fixture
def profkit_time(request: pytest.FixtureRequest) -> Callable[..., Run]:
    """Measure a call as `profkit.profile(function, *args, **options)` and return its Run.

    The test fails for a wrong result, and for a call that is slower than the last one stored beyond
    the margin (5% unless `margin=` is given). It is skipped without a baseline:
    `pytest --profkit-save` stores one. Calls of one name in a test are numbered: each has its own.
    """
    from profkit.callables.baseline import check_call
    from profkit.callables.calls import call_name
    from profkit.history.store import DEFAULT

    config = request.config
    folder = config.getoption("--profkit-store") or config.rootpath / DEFAULT
    calls: Counter[str] = Counter()

    def time(function: Callable[..., Any], *args: Any, **options: Any) -> Run:
        calls[call_name(function)] += 1
        number = calls[call_name(function)]
        return check_call(
            function,
            args,
            options,
            test=request.node.nodeid + (f" (call {number})" if number > 1 else ""),
            folder=folder,
            save=config.getoption("--profkit-save"),
            tell=lambda line: request.node.add_report_section("call", "profkit", line),
        )

    return time
