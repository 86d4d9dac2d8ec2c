"""Experiments: what a diagnosis predicts of a change, and what the change did."""
