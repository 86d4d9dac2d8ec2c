"""The history of runs: a store that outlives them, and what it shows."""
