"""Names of resources and tracks, from a data file of this package."""

from collections.abc import Mapping

from profkit.core.yaml_files import shipped_yaml

BUSY: Mapping[str, str]
"""Utilization of resources in the order of display: quantities and labels."""
RESOURCES: Mapping[str, str]
"""The resources whose use bounds the time, by the quantity of their utilization."""
TRACKS: Mapping[str, tuple[str, str]]
"""Quantities sampled over a kernel's run time, in the order of display: label and unit."""
BUSY, RESOURCES, TRACKS = shipped_yaml("profkit.report", "resources.yaml").values()
