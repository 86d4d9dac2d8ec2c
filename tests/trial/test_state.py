"""What code reads, and whether it has changed."""

from __future__ import annotations

from profkit.trial.child.state import Watch, difference, state


class Unaddressed:
    """As a tensor of a functional transform."""

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor")


def test_what_can_not_be_looked_at_ends_a_look_not_the_program() -> None:
    read = {"rate": 0.1, "tensor": Unaddressed(), "steps": 1}
    before = state(read)
    assert difference(before, state(read)) == ""
    assert Watch().difference(before, read) == ""
    read["rate"] = 0.2
    assert difference(before, state(read)) == Watch().difference(before, read) == "rate"


def test_looks_end_where_they_have_taken_their_time() -> None:
    read = {"rate": 0.1}
    watch, before = Watch(), state(read)
    watch.spent, read["rate"] = 60.0, 0.2
    assert watch.difference(before, read) == ""
    assert watch.difference(before, read, is_due=True) == "rate"
