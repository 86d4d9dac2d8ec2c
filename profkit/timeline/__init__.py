RUN_FILE = "timeline.sqlite"
"""A run's timeline, beside its report."""
TRACES = (".json", ".json.gz")
"""How the names of torch.profiler's traces end."""
