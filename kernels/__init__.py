"""The project's CUDA and Triton kernels: the attention ladder, the defect/fix pairs, and how both
are recorded on a GPU."""
