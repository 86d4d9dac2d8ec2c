"""torch.compile and CUDA graphs of outermost modules."""

from __future__ import annotations

from typing import Any

_MOST_GRAPHS = 4  # input shapes with a graph of their own, chosen: each keeps its own memory


def compile_default(program: Any) -> None:
    """torch.compile."""
    _compile(program, "compile", None)


def compile_reduce_overhead(program: Any) -> None:
    """torch.compile with CUDA graphs."""
    _compile(program, "compile-reduce-overhead", "reduce-overhead")


def compile_max_autotune(program: Any) -> None:
    """torch.compile, which measures more kernels, with CUDA graphs."""
    _compile(program, "compile-max-autotune", "max-autotune")


def _compile(program: Any, name: str, mode: str | None) -> None:
    torch = program.torch
    has_graphs = mode is not None

    def compiled(module: Any, call: Any) -> Any:
        if type(module).__name__ == "OptimizedModule" or not any(True for _ in module.parameters()):
            return call
        program.applied(name)
        faster, is_first = torch.compile(call, mode=mode), True

        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal is_first
            if not has_graphs:
                return faster(*args, **kwargs)
            was_first, is_first = is_first, False
            if was_first and torch.is_grad_enabled() and not module.training:
                return call(*args, **kwargs)  # after it, one sees whether a backward pass follows
            if torch.is_grad_enabled() and not _is_inference(program, module):
                return faster(*args, **kwargs)
            with torch.no_grad():  # graphs wait for the backward pass of what they have run
                torch.compiler.cudagraph_mark_step_begin()
                return _copied(torch, faster(*args, **kwargs))

        return run

    if has_graphs:
        program.on_step.append(lambda: torch.compiler.cudagraph_mark_step_begin())
    program.wrappers.append(compiled)


def _is_inference(program: Any, module: Any) -> bool:
    """Whether no backward pass has followed calls of a module."""
    return not module.training and not program.record.features & {"backward", "optimizer"}


def _copied(torch: Any, output: Any) -> Any:
    from torch.utils._pytree import tree_map

    return tree_map(lambda part: part.clone() if torch.is_tensor(part) else part, output)


def cuda_graph(program: Any) -> None:
    """Forward and backward of outermost modules as CUDA graphs, one for each shape of inputs."""
    program.wrappers.append(lambda module, call: _Graphs(program, module, call))


class _Graphs:
    """The graphs of a module by the shapes of its inputs; what has none is called as it is.

    Parameters and buffers stay where they are. Other arguments and results than tensors are
    constants of a graph. A capture runs the module a few times: buffers and random numbers are
    restored after it.
    """

    def __init__(self, program: Any, module: Any, call: Any) -> None:
        self.program, self.torch = program, program.torch
        self.module, self.call = module, call
        self.graphs: dict[Any, Any] = {}
        self.has_run = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from torch.utils._pytree import tree_flatten, tree_unflatten

        torch = self.torch
        leaves, shape = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if torch.is_tensor(leaf)]
        is_loss = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        is_loss = is_loss and not any(p.requires_grad for p in self.module.parameters())
        if not tensors or is_loss or not all(tensor.is_cuda for tensor in tensors):
            return self.call(*args, **kwargs)
        is_training = torch.is_grad_enabled() and not (
            self.has_run and _is_inference(self.program, self.module)
        )
        key = (self._key(leaves), is_training, self.module.training)
        if key not in self.graphs:
            # A backward pass of before, which `loss` still holds, ties gradients to its stream.
            is_late = is_training and (self.has_run or not self.module.training)
            self.has_run = True
            if is_late or len(self.graphs) >= _MOST_GRAPHS:
                return self.call(*args, **kwargs)
            holes = [torch.is_tensor(leaf) for leaf in leaves]

            def refilled(*inputs: Any) -> Any:
                remaining = iter(inputs)
                filled = [next(remaining) if hole else leaf for hole, leaf in zip(holes, leaves)]
                again, named = tree_unflatten(filled, shape)
                return self.call(*again, **named)

            with torch.set_grad_enabled(is_training):
                self.graphs[key] = self._captured(refilled, tensors)
        return self.graphs[key](*tensors)

    def _key(self, leaves: Any) -> Any:
        torch = self.torch
        return tuple(
            (leaf.shape, leaf.dtype, leaf.stride(), leaf.requires_grad)
            if torch.is_tensor(leaf)
            else leaf
            if isinstance(leaf, (bool, int, float, str, type(None)))
            else id(leaf)
            for leaf in leaves
        )

    def _captured(self, function: Any, tensors: Any) -> Any:
        torch = self.torch
        buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        random = torch.cuda.get_rng_state()
        samples = tuple(t.detach().clone().requires_grad_(t.requires_grad) for t in tensors)
        if torch.is_grad_enabled() and any(p.requires_grad for p in self.module.parameters()):
            replay = self._captured_training(function, samples)
        else:
            replay = self._captured_inference(function, samples)
        with torch.no_grad():
            for name, buffer in self.module.named_buffers():
                buffer.copy_(buffers[name])
        torch.cuda.set_rng_state(random)
        self.program.applied("cuda-graph")
        return replay

    def _captured_training(self, function: Any, samples: Any) -> Any:
        from torch.utils._pytree import tree_flatten, tree_unflatten

        torch, module = self.torch, self.module
        outputs: list[Any] = []
        hole = object()

        class Flat(torch.nn.Module):  # type: ignore[misc, name-defined]
            """The module as one of tensors alone."""

            def __init__(self) -> None:
                super().__init__()
                self.inner = module

            def forward(self, *inputs: Any) -> Any:
                leaves, shape = tree_flatten(function(*inputs))
                tensors = tuple(leaf for leaf in leaves if torch.is_tensor(leaf))
                outputs[:] = [[hole if torch.is_tensor(leaf) else leaf for leaf in leaves], shape]
                return tensors

        flat = Flat()
        flat.training = module.training
        is_cached = torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled(False)  # what a capture caches is gone after it
        try:
            graphed = torch.cuda.make_graphed_callables(flat, samples, allow_unused_input=True)
        finally:
            torch.set_autocast_cache_enabled(is_cached)
        constants, shape = outputs

        def replay(*inputs: Any) -> Any:
            tensors = iter(graphed(*inputs))
            leaves = [next(tensors).clone() if c is hole else c for c in constants]
            return tree_unflatten(leaves, shape)

        return replay

    def _captured_inference(self, function: Any, samples: Any) -> Any:
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # as torch's own captures warm up
                function(*samples)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = function(*samples)

        def replay(*inputs: Any) -> Any:
            with torch.no_grad():
                for sample, value in zip(samples, inputs):
                    sample.copy_(value)
            graph.replay()
            return _copied(torch, outputs)

        return replay
