"""The Cholesky factors of symmetric matrices with 8 added to the diagonal."""

import torch

SIZE = 8


def reference(inputs):
    packed = inputs["matrices"]
    rows, columns = torch.tril_indices(SIZE, SIZE, device=packed.device)
    full = packed.new_zeros((packed.shape[1], SIZE, SIZE))
    full[:, rows, columns] = packed.T
    full[:, columns, rows] = packed.T
    full.diagonal(dim1=1, dim2=2).add_(SIZE)
    return torch.linalg.cholesky(full)[:, rows, columns].T.contiguous()
