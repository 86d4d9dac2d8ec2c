"""The default target of `profkit calibrate`: a matrix product."""

from profkit.capture.target import Target, Variant, normal_inputs
from profkit.core.work import Work

_SIZE = 2048  # chosen: 683 FLOP/B, compute-bound on data center GPUs; short: 17 GFLOP

target = Target(
    name="calibration",
    shapes={"m": _SIZE, "n": _SIZE, "k": _SIZE},
    dtype="float16",
    work=Work.gemm(_SIZE, _SIZE, _SIZE, element_bytes=2),
    inputs=lambda device, seed: normal_inputs(
        device, seed, "float16", a=(_SIZE, _SIZE), b=(_SIZE, _SIZE)
    ),
    reference=lambda inputs: inputs["a"] @ inputs["b"],
    variants=[Variant("matmul", lambda inputs: inputs["a"] @ inputs["b"])],
)
