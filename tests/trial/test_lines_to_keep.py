"""What a user is told to write does what a switch did."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from profkit.trial.switch import all_switches  # noqa: E402
from profkit.trial.switches import precision  # noqa: E402

BACKENDS = "flash", "mem_efficient", "cudnn"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = enabled()
    yield
    for name in BACKENDS:
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(name in before)


def enabled() -> set[str]:
    return {name for name in BACKENDS if getattr(torch.backends.cuda, f"{name}_sdp_enabled")()}


@pytest.mark.parametrize("name", ["flash", "efficient", "cudnn"])
def test_lines_choose_the_backends_of_attention_that_a_switch_chose(name: str) -> None:
    program = SimpleNamespace(torch=torch, wrappers=[], applied=str)
    getattr(precision, f"sdpa_{name}")(program)
    chosen = enabled()
    for each in BACKENDS:
        getattr(torch.backends.cuda, f"enable_{each}_sdp")(True)
    switches = {switch.name: switch for switch in all_switches()}
    exec(switches[f"sdpa-{name}"].keep, {"torch": torch})
    assert enabled() == chosen < {*BACKENDS}
