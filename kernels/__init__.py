"""CUDA and Triton kernels: the attention ladder."""
