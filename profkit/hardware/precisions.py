"""Names of the precisions of arithmetic, from a data file of this package."""

from collections.abc import Mapping

from profkit.core.yaml_files import shipped_yaml

PRECISIONS: Mapping[str, str] = shipped_yaml("profkit.hardware", "precisions.yaml")
"""Labels in the order of display."""
