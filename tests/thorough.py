"""How much is tried: enough for each change, or all of it with `--hypothesis-profile nightly`."""

from __future__ import annotations

from hypothesis import settings


def nightly() -> bool:
    """Whether all is to be tried."""
    return settings.get_current_profile_name() == "nightly"
