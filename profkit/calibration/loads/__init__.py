"""What keeps one resource of a GPU busy, to see how much of it can be had: run on the GPU."""
