"""The tests. They run side by side, in processes that fork: threads of libraries would only wait
for each other."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
