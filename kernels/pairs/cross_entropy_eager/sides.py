"""Cross-entropy per token over a large vocabulary: in tensor operations, and in one kernel."""

import torch
import triton
import triton.language as tl


def before(inputs):
    logits, target = inputs["logits"].float(), inputs["target"]
    log_probability = torch.log_softmax(logits, dim=-1)
    return -log_probability.gather(1, target[:, None]).squeeze(1)


@triton.jit
def cross_entropy(logits_ptr, target_ptr, out_ptr, columns, block: tl.constexpr):
    row = tl.program_id(0)
    row_ptr = logits_ptr + row.to(tl.int64) * columns
    offsets = tl.arange(0, block)
    maximum = tl.full((block,), -1e30, tl.float32)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, columns, block):
        mask = start + offsets < columns
        x = tl.load(row_ptr + start + offsets, mask=mask, other=-1e30).to(tl.float32)
        larger = tl.maximum(maximum, x)
        total = total * tl.exp(maximum - larger) + tl.exp(x - larger)
        maximum = larger
    highest = tl.max(maximum, axis=0)
    log_sum = highest + tl.log(tl.sum(total * tl.exp(maximum - highest), axis=0))
    target = tl.load(target_ptr + row)
    tl.store(out_ptr + row, log_sum - tl.load(row_ptr + target).to(tl.float32))


def after(inputs):
    logits = inputs["logits"]
    rows, columns = logits.shape
    out = torch.empty(rows, dtype=torch.float32, device=logits.device)
    cross_entropy[(rows,)](logits, inputs["target"], out, columns, block=4096, num_warps=8)
    return out
