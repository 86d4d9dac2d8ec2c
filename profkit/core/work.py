"""The work of an algorithm: FLOP and compulsory traffic, independent of the kernel."""

from __future__ import annotations

from profkit.core.typed_file import Model, Number

BACKWARD_FLOP = 2.5  # five matrix products backward, two forward
_FORWARD_TENSORS = 2  # of each head count: Q and O; K and V
_BACKWARD_TENSORS = 4  # of each head count: Q, O, dO, dQ; K, V, dK, dV


class Work(Model, frozen=True):
    """The work of one call of a target's variant.

    `flop` counts floating-point operations (a fused multiply-add is two), `bytes` the
    compulsory traffic: each input read once, each output written once. `what` describes it.
    """

    flop: Number
    bytes: Number
    what: str = ""

    def __post_init__(self) -> None:
        if self.flop < 0 or self.bytes < 0:
            raise ValueError(f"work can't be negative: {self.flop} FLOP, {self.bytes} bytes")

    @property
    def intensity(self) -> float:
        """FLOP per byte of compulsory traffic; infinite without traffic."""
        return self.flop / self.bytes if self.bytes else float("inf")

    @classmethod
    def attention(
        cls,
        batch: int,
        heads: int,
        length: int,
        dim: int,
        *,
        element_bytes: int,
        causal: bool = False,
        backward: bool = False,
        kv_heads: int | None = None,
    ) -> Work:
        """Attention softmax(Q K^T) V over tensors of (batch, heads, length, dim).

        `kv_heads` heads of K and V serve groups of as many heads of Q each; None: as many as of Q.

        FLOP: two matrix products of 2*S*S*D a head, so 4*B*H*S^2*D; half of it where causal;
        backward 2.5 times forward (five products for two). The softmax is not counted.
        Bytes: forward reads Q, K, V and writes O, 4*B*H*S*D elements; backward reads Q, K, V, O,
        dO and writes dQ, dK, dV, 8*B*H*S*D. Half of these tensors have the heads of K and V. The
        per-row statistics are left out.
        """
        shared = heads if kv_heads is None else kv_heads
        _positive(batch=batch, heads=heads, length=length, dim=dim, element_bytes=element_bytes)
        _positive(kv_heads=shared)
        if heads % shared:
            raise ValueError(f"{heads} heads of Q can't share {shared} of K and V evenly")
        flop = 4.0 * batch * heads * length * length * dim
        flop *= (0.5 if causal else 1.0) * (BACKWARD_FLOP if backward else 1.0)
        tensors = _BACKWARD_TENSORS if backward else _FORWARD_TENSORS
        words = [f"attention {'backward' if backward else 'forward'}"]
        groups = f"H={heads}" if shared == heads else f"H={heads}/{shared}"
        words += [f"B={batch} {groups} S={length} D={dim}"] + ["causal"] * causal
        moved = float(tensors * batch * (heads + shared) * length * dim * element_bytes)
        return cls(flop, moved, " ".join(words))

    @classmethod
    def gemm(cls, m: int, n: int, k: int, *, element_bytes: int) -> Work:
        """The product of (m, k) and (k, n): 2*m*n*k FLOP; m*k + k*n elements read, m*n written."""
        _positive(m=m, n=n, k=k, element_bytes=element_bytes)
        moved = float((m * k + k * n + m * n) * element_bytes)
        return cls(2.0 * m * n * k, moved, f"matrix product M={m} N={n} K={k}")

    @classmethod
    def elementwise(
        cls, elements: int, *, reads: int, writes: int, flop_per_element: float, element_bytes: int
    ) -> Work:
        """A map over `elements`: `reads` inputs and `writes` outputs of that many elements each.

        FLOP: elements * flop_per_element. Bytes: elements * (reads + writes) * element_bytes.
        """
        _positive(elements=elements, element_bytes=element_bytes)
        moved = float(elements * (reads + writes) * element_bytes)
        what = f"elementwise over {elements} elements, {reads} read and {writes} written"
        return cls(elements * flop_per_element, moved, what)


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size <= 0:
            raise ValueError(f"{name} must be positive, not {size}")
