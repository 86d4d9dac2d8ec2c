RUN_FILE = "timeline.sqlite"
"""A run's timeline, beside its report."""
