"""One Adam step on flat parameters: in tensor operations, and in one kernel."""

import torch
import triton
import triton.language as tl

RATE, BETA1, BETA2, EPSILON = 0.01, 0.9, 0.999, 1e-6  # bias correction is in the rate


def before(inputs):
    gradient = inputs["gradient"]
    first = torch.lerp(inputs["first"], gradient, 1 - BETA1)
    second = torch.mul(inputs["second"], BETA2)
    second.addcmul_(gradient, gradient, value=1 - BETA2)
    denominator = second.sqrt()
    denominator.add_(EPSILON)
    return torch.addcdiv(inputs["parameter"], first, denominator, value=-RATE)


@triton.jit
def adam(
    parameter_ptr,
    gradient_ptr,
    first_ptr,
    second_ptr,
    new_parameter_ptr,
    new_first_ptr,
    new_second_ptr,
    n,
    rate,
    beta1,
    beta2,
    epsilon,
    block: tl.constexpr,
):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    mask = offsets < n
    parameter = tl.load(parameter_ptr + offsets, mask=mask)
    gradient = tl.load(gradient_ptr + offsets, mask=mask)
    first = tl.load(first_ptr + offsets, mask=mask)
    second = tl.load(second_ptr + offsets, mask=mask)
    first += (1 - beta1) * (gradient - first)
    second = beta2 * second + (1 - beta2) * gradient * gradient
    parameter -= rate * first / (tl.sqrt(second) + epsilon)
    tl.store(new_parameter_ptr + offsets, parameter, mask=mask)
    tl.store(new_first_ptr + offsets, first, mask=mask)
    tl.store(new_second_ptr + offsets, second, mask=mask)


def after(inputs):
    tensors = [inputs[name] for name in ("parameter", "gradient", "first", "second")]
    parameter, first, second = (torch.empty_like(tensors[0]) for _ in range(3))
    n = parameter.numel()
    adam[(triton.cdiv(n, 1024),)](
        *tensors, parameter, first, second, n, RATE, BETA1, BETA2, EPSILON, block=1024, num_warps=4
    )
    return parameter
