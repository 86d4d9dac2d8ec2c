"""CUDA graphs of outermost modules and of steps of optimizers."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, wraps
from itertools import chain
from operator import attrgetter
from typing import Any

_MOST_GRAPHS = 4  # input shapes with a graph of their own, chosen: each keeps its own memory
_OPTIMIZERS = ("SGD", "Adam", "AdamW")  # of which a step reads nothing from the device
_FIRST = 4  # calls of a graph, chosen, with a look at its constants: no window begins in them
_WARM = 3  # steps before a capture, as torch's own captures warm up
_DEVICE = "cuda"
_HOOKS = "_forward_hooks", "_forward_pre_hooks"
_BACKWARD_HOOKS = "_backward_hooks", "_backward_pre_hooks"
_TABLES = "_modules", "_parameters"
_NEEDED = attrgetter("requires_grad")
_PLAIN = {bool, int, float, str, type(None)}


def cuda_graph(program: Any) -> None:
    """Forward and backward of outermost modules as CUDA graphs, one for each shape of inputs, and
    steps of optimizers."""
    from torch.utils.weak import WeakTensorKeyDictionary

    torch, trained = program.torch, WeakTensorKeyDictionary()

    def graphed(module: Any, call: Any) -> Any:
        # In distributed programs, hooks that a graph leaves out reduce gradients.
        is_one = not (torch.distributed.is_available() and torch.distributed.is_initialized())
        is_here = _are_here(torch, [*module.parameters(), *module.buffers()])
        return _Graphs(program, module, call, trained) if is_one and is_here else call

    if "second-derivatives" not in program.record.plan["features"]:  # which a graph has not
        program.wrappers.append(graphed)
    for name in _OPTIMIZERS:
        _graph_steps(program, getattr(torch.optim, name))


def _are_here(torch: Any, tensors: Any) -> bool:
    """Whether tensors lie on the device whose work a capture records."""
    devices = {tensor.device for tensor in tensors}
    return all(d.type == _DEVICE and d.index == torch.cuda.current_device() for d in devices)


@contextmanager
def _capturing(torch: Any) -> Iterator[None]:
    """Captures beside which other threads pin memory, and no graph is freed, which ends a capture;
    what autocast cached is gone after one, and a forward pass writes no gradients, as each graph
    has memory of its own. What is run before them takes the same branches."""
    graph, is_cached, is_on = torch.cuda.graph, torch.is_autocast_cache_enabled(), gc.isenabled()
    is_capturing = torch.cuda.is_current_stream_capturing
    graphs, pool = torch.cuda.graphs, torch.cuda.graphs.graph_pool_handle
    torch.cuda.is_current_stream_capturing = lambda: True  # some libraries don't look at masks then
    gc.disable()
    torch.cuda.graph = partial(graph, capture_error_mode="thread_local")
    graphs.graph_pool_handle = lambda: None  # each graph has its own
    torch.set_autocast_cache_enabled(False)
    try:
        with warnings.catch_warnings():  # of streams of backward passes that are not captured
            warnings.filterwarnings("ignore", "The AccumulateGrad node|Synchronization debug mode")
            yield
    finally:
        (gc.enable if is_on else gc.disable)()
        torch.cuda.graph, torch.cuda.is_current_stream_capturing = graph, is_capturing
        graphs.graph_pool_handle = pool
        torch.set_autocast_cache_enabled(is_cached)


def _graph_steps(program: Any, kind: Any) -> None:
    steps: Any = weakref.WeakKeyDictionary()
    eager = vars(kind).get("step")
    if eager is None:  # inherited
        return

    @wraps(eager)
    def step(optimizer: Any, closure: Any = None) -> Any:
        if program.is_inside():
            return eager(optimizer, closure)
        if optimizer not in steps:
            steps[optimizer] = _GraphedStep(program, eager)
        return steps[optimizer](optimizer, closure)

    kind.step = step


class _GraphedStep:
    """An optimizer's steps: a few as they are, then a graph while what it holds stays as it was.

    Learning rates are read from the device where the optimizer can, so that they may change.
    """

    def __init__(self, program: Any, eager: Any) -> None:
        self.program, self.torch, self.watch = program, program.torch, program.record.Watch()
        self.eager, self.calls, self.has_failed = eager, 0, False
        self.constants: Any = None
        self.state: Any = None
        self.graph: Any = None

    def __call__(self, optimizer: Any, closure: Any) -> Any:
        with self.torch.enable_grad():
            loss = closure() if closure else None
        self._step(optimizer)
        return loss

    def _step(self, optimizer: Any) -> None:
        groups = optimizer.param_groups
        pairs = [(p, g) for group in groups for p in group["params"] if (g := p.grad) is not None]
        parameters, gradients = zip(*pairs) if pairs else ((), ())
        options = self._options(optimizer, groups)
        if self.has_failed or options is None or not self._are_plain(gradients):
            self.eager(optimizer)
            return
        constants = options, [*map(self.torch.Tensor.data_ptr, parameters)]
        if constants != self.constants or self.state is not optimizer.state:
            self.constants, self.state, self.calls, self.graph = constants, optimizer.state, 0, None
        self.calls += 1
        # The first is of numbers that change each time, perhaps.
        if self.calls == 1 or not (self.graph or _are_here(self.torch, parameters)):
            self.eager(optimizer)
            return
        self._set_rates(groups)
        if self.calls <= _WARM or not (self.graph or self._is_captured(optimizer, gradients)):
            self._on_device(optimizer)
        else:
            self._replay(optimizer, gradients)

    def _replay(self, optimizer: Any, gradients: Any) -> None:
        look, is_other = partial(self._places, optimizer), len(optimizer.state) != len(gradients)
        if self.watch.difference(self.held, look, is_due=is_other):
            raise RuntimeError("the program replaces its optimizer's state: a graph keeps it")
        pairs = zip(self.gradients, gradients)
        moved = [(old, new) for old, new in pairs if old.data_ptr() != new.data_ptr()]
        if moved:
            with self.torch.no_grad():
                self.torch._foreach_copy_(*map(list, zip(*moved)))
        self.graph.replay()

    def _are_plain(self, gradients: Any) -> bool:
        return {(type(g), g.layout) for g in gradients} == {(self.torch.Tensor, self.torch.strided)}

    def _options(self, optimizer: Any, groups: Any) -> Any:
        """The numbers that a graph holds; None where the device has some."""
        scales = [getattr(optimizer, name, None) for name in ("grad_scale", "found_inf")]
        values = (value for group in groups for value in group.values())
        if scales != [None, None] or any(map(self.torch.is_tensor, values)):
            return None
        free = ({"params", "lr", "capturable"} if "capturable" in g else {"params"} for g in groups)
        return [{n: v for n, v in g.items() if n not in names} for g, names in zip(groups, free)]

    def _set_rates(self, groups: Any) -> None:
        torch, rates = self.torch, [group["lr"] for group in groups if "capturable" in group]
        if self.calls == 2:
            place: Any = {"dtype": torch.float32, "device": groups[0]["params"][0].device}
            self.rates = [[rate, torch.full((), float(rate), **place)] for rate in rates]
        for row, rate in zip(self.rates, rates):
            if row[0] != rate:
                row[0] = rate
                row[1].fill_(rate)

    def _on_device(self, optimizer: Any) -> None:
        """A step that reads its numbers from the device, as one that is captured has to."""
        groups = [group for group in optimizer.param_groups if "capturable" in group]
        optimizer._warned_capturable_if_run_uncaptured = True
        for parameter, state in optimizer.state.items():
            if self.calls == 2 and self.torch.is_tensor(state.get("step")):
                state["step"] = state["step"].to(parameter.device)
        for group, (_, rate) in zip(groups, self.rates):
            group["capturable"], group["lr"] = True, rate
        try:
            self.eager(optimizer)
        finally:
            for group, (rate, _) in zip(groups, self.rates):
                group["lr"] = rate

    def _is_captured(self, optimizer: Any, gradients: Any) -> bool:
        graph = self.torch.cuda.CUDAGraph()
        try:
            with _capturing(self.torch), self.torch.cuda.graph(graph):
                self._on_device(optimizer)
        except RuntimeError:
            self.has_failed = True
            return False
        self.graph, self.gradients = graph, [gradient.detach() for gradient in gradients]
        self.held = self._places(optimizer)
        self.program.applied("cuda-graph")
        facts = self.program.record.facts
        names = dict.fromkeys([*facts.get("switched", "").split(), type(optimizer).__name__])
        facts |= {"update": "", "switched": " ".join(names)}
        return True

    def _places(self, optimizer: Any) -> list[tuple[str, int]]:
        """Where the optimizer's state lies."""
        kind, states = self.torch.Tensor, optimizer.state.values()
        parts = (part.items() for part in states)
        return [(n, t.data_ptr()) for row in parts for n, t in row if type(t) is kind]


def _without(left: set[int], gradients: Any) -> Any:
    """Gradients without those at some places; None for as they are."""
    kept = (None if place in left else each for place, each in enumerate(gradients))
    return tuple(kept) if left else None


class _Graphs:
    """The graphs of a module by the shapes of its inputs; what has none is called as it is.

    Parameters and buffers that are moved are refused, as what is frozen later is. Arguments and
    results that are no tensors are constants of a graph, and so is what the program's own modules
    and hooks read. A capture runs the module a few times: buffers and random numbers are restored
    after it. A second call before the backward pass of the first is as it is, and gradients that
    are added up lie where no graph writes. `trained` are parameters that a module has been called
    with in training.
    """

    def __init__(self, program: Any, module: Any, call: Any, trained: Any) -> None:
        self.program, self.torch, self.trained = program, program.torch, trained
        self.module, self.call, self.name = module, call, type(module).__name__
        self.watch = program.record.Watch()
        self.graphs: dict[Any, Any] = {}
        self.read: dict[Any, Any] = {}
        self.own: dict[int, int] = {}
        self.calls = Counter[Any]()
        self.has_run = self.is_waiting = False
        self.newest: Any = None
        self.last: Any = None
        program.on_step.append(lambda: setattr(self, "is_waiting", False))
        program.record.finishing.append(partial(self._compare, is_due=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

        torch = self.torch
        is_flat = not kwargs and all(map(torch.is_tensor, args))
        leaves = args if is_flat else tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if torch.is_tensor(leaf)]
        is_loss = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        is_loss = is_loss and not any(p.requires_grad for p in self.module.parameters())
        if not tensors or is_loss or not _are_here(torch, tensors):
            return self.call(*args, **kwargs)
        is_training = torch.is_grad_enabled() and not (
            self.has_run and self.program.is_inference(self.module)
        )
        is_lower = torch.is_autocast_enabled()
        key = (*map(self._key, leaves), is_training, self.module.training, is_lower)
        if key not in self.graphs and (wide := (*map(self._wide, key),)) in self.graphs:
            key = wide
        if key not in self.graphs:
            # A backward pass of before, which `loss` still holds, ties gradients to its stream.
            parameters = list(self.module.parameters())
            is_late = self.has_run or any(p in self.trained for p in parameters)
            is_late = is_training and (is_late or not self.module.training)
            self.has_run = True
            self.trained.update(dict.fromkeys(parameters if is_training else ()))
            if is_late or len(self.graphs) >= _MOST_GRAPHS or self._is_watched(parameters):
                return self.call(*args, **kwargs)
            holes = [torch.is_tensor(leaf) for leaf in leaves]
            _, shape = tree_flatten((args, kwargs))

            def refilled(*inputs: Any) -> Any:
                remaining = iter(inputs)
                filled = [next(remaining) if hole else leaf for hole, leaf in zip(holes, leaves)]
                again, named = tree_unflatten(filled, shape)
                return self.call(*again, **named)

            with torch.set_grad_enabled(is_training), _capturing(torch):
                self.graphs[key] = self._captured(refilled, tensors)
            if self.graphs[key] is not refilled:
                self.program.applied("cuda-graph")
                self.program.record.facts["module"] = ""
                self.parameters = [*self.module.parameters()]  # some come in a first call
                parts = [*self.module.modules()]
                self.tables = [vars(part)[name] for part in parts for name in _TABLES]
                self.read[key] = self._places(), self._held(), self._state()
        self.last = key
        self._compare()
        return self.graphs[key](*tensors)

    def _state(self) -> Any:
        """What the program's own modules, and hooks, read and write besides parameters and buffers;
        a graph is of one mode."""
        record, parts = self.program.record, list(self.module.modules())
        own = [part for part in parts if record.is_own(type(part))]
        hooks = [h for part in parts for kind in _HOOKS for h in vars(part).get(kind, {}).values()]
        return [each for each in record.state(*own, *hooks, is_own=True) if each[0] != "training"]

    def _places(self) -> tuple[list[Any], ...]:
        """Which modules and parameters there are, where parameters lie, and whether they get
        gradients; as quick as may be, as each replay asks."""
        parts = chain.from_iterable(table.values() for table in self.tables)
        places = map(self.torch.Tensor.data_ptr, self.parameters)
        needed = map(_NEEDED, self.parameters) if self.torch.is_grad_enabled() else ()
        return [*map(id, parts)], [*places], [*needed]

    def _held(self) -> list[tuple[str, Any]]:
        """The state, and of all modules, installed ones too, numbers and words, and where tensors
        lie that hooks don't compute of parameters."""
        rows: list[tuple[str, Any]] = []
        for part in self.module.modules():
            fields = vars(part)
            plain = {n: t for n, t in fields.items() if self.torch.is_tensor(t)}
            computed = [n for n in plain for name in fields["_parameters"] if name.startswith(n)]
            tensors = {**plain, **fields["_buffers"], **dict.fromkeys(computed)}.items()
            rows += [(n, t is not None and t.data_ptr()) for n, t in tensors]
            rows += [(n, value) for n, value in fields.items() if type(value) in _PLAIN]
        return [*rows, *self._state()]

    def _is_watched(self, parameters: Any) -> bool:
        """Whether hooks wait for gradients, which a graph's backward pass does not call."""
        kinds = [vars(part).get(kind) for part in self.module.modules() for kind in _BACKWARD_HOOKS]
        own = ((p._backward_hooks, p._post_accumulate_grad_hooks) for p in parameters)
        return any(kinds) or any(map(any, own))

    def _compare(self, *, is_due: bool = False) -> None:
        """Raises RuntimeError where what the last graph holds as constants has changed; at the end,
        too, as there may have been no time for a look."""
        if self.last in self.read:
            places, held, state = self.read[self.last]
            before, look = (state, self._state) if is_due else (held, self._held)
            self.calls[self.last] += 1
            is_first = self.calls[self.last] <= _FIRST
            name = self.watch.difference(before, look, is_due=is_due or is_first)
            if not is_due and places != self._places():
                name = "its parts, or the place or requires_grad of a parameter"
            if name:
                raise RuntimeError(f"{self.name} reads {name}, which has changed: a graph keeps it")

    def _key(self, leaf: Any) -> Any:
        if self.torch.is_tensor(leaf):
            return leaf.shape, leaf.dtype, leaf.stride(), leaf.requires_grad
        return leaf if type(leaf) in _PLAIN else id(leaf)

    def _wide(self, key: Any) -> Any:
        """The key of the same numbers in full precision for those of 16 bits, in which autocast
        returns states that are the next inputs; what is differentiated stays as it is."""
        is_narrow = isinstance(key, tuple) and "float16" in str(key[1]) and not key[3]
        return (key[0], self.torch.float32, *key[2:]) if is_narrow else key

    def _captured(self, function: Any, tensors: Any) -> Any:
        torch = self.torch
        buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        random = torch.cuda.get_rng_state()
        with torch.inference_mode(False):  # in which tensors don't count what is written to them
            samples = tuple(t.detach().clone().requires_grad_(t.requires_grad) for t in tensors)
        if self._is_eager(function, samples):
            replay = function
        elif torch.is_grad_enabled() and any(p.requires_grad for p in self.module.parameters()):
            replay = self._captured_training(function, samples)
        else:
            replay = self._captured_inference(function, samples)
        with torch.no_grad():
            for name, buffer in self.module.named_buffers():
                buffer.copy_(buffers[name])
        torch.cuda.set_rng_state(random)
        return replay

    def _is_eager(self, function: Any, samples: Any) -> bool:
        """Whether a function is not for a capture: it waits for the device, to read a number or a
        size, writes to its arguments, returns what is not copied, or keeps what has gradients (of
        another stream). A capture that fails leaves the device unusable. A first call may wait for
        what it makes once, as the state of a recurrent module's dropout. Raises RuntimeError for
        one that changes what the host has, or parameters."""
        from torch.utils._pytree import tree_leaves

        cuda, record = self.torch.cuda, self.program.record
        function(*samples)
        mode, versions = cuda.get_sync_debug_mode(), [sample._version for sample in samples]
        state = self._changing()
        cuda.set_sync_debug_mode("error")
        try:
            leaves = tree_leaves(function(*samples))
        except RuntimeError:
            leaves = [function]
        finally:
            cuda.set_sync_debug_mode(mode)
        if name := record.difference(state, self._changing()):
            raise RuntimeError(f"{self.name} changes {name} when called: a graph would only once")
        attributes = (each for part in self.module.modules() for each in vars(part).values())
        is_kept = any(self.torch.is_tensor(each) and each.grad_fn for each in attributes)
        is_written = versions != [sample._version for sample in samples]
        return is_kept or is_written or not all(self._is_copied(leaf) for leaf in leaves)

    def _changing(self) -> list[tuple[str, Any]]:
        written = [(each._version, each.data_ptr()) for each in self.module.parameters()]
        random = self.program.record.random_numbers()
        return [*self._held(), ("random numbers", random), ("a parameter", written)]

    def _is_copied(self, leaf: Any) -> bool:
        """Whether a part of a result is copied, or is a cache, which training does not read."""
        is_plain = type(leaf) in _PLAIN or self.torch.is_tensor(leaf)
        return is_plain or type(leaf).__name__.endswith("Cache")

    def _captured_training(self, function: Any, samples: Any) -> Any:
        from torch.utils._pytree import tree_flatten, tree_unflatten

        torch, module = self.torch, self.module
        outputs: list[Any] = []
        hole = object()

        def forward(*inputs: Any) -> Any:
            """The module as one of tensors alone."""
            leaves, shape = tree_flatten(function(*inputs))
            outputs[:] = [[hole if torch.is_tensor(leaf) else leaf for leaf in leaves], shape]
            return tuple(leaf for leaf in leaves if torch.is_tensor(leaf))

        flat = torch.nn.Module()
        flat.inner, flat.forward, flat.training = module, forward, module.training
        graphed = torch.cuda.make_graphed_callables(flat, samples, allow_unused_input=True)
        constants, shape = outputs
        needed = self._needed(forward(*samples), len(samples))

        def replay(*inputs: Any) -> Any:
            if self.is_waiting:
                return function(*inputs)
            tensors = graphed(*inputs)
            node = next((tensor.grad_fn for tensor in tensors if tensor.grad_fn), None)
            if node:
                self.is_waiting, self.newest = True, (own := object())
                left: set[int] = set()  # out by this loss: graphs have zeros for them
                node.register_prehook(
                    lambda given: left.update(self._begin_backward(own, needed, given))
                )
                if len(needed) > 1:
                    node.register_hook(lambda grads, _: _without(left, grads))
            each = iter(tensors)
            leaves = [next(each).clone() if c is hole else c for c in constants]
            return tree_unflatten(leaves, shape)

        return replay

    def _needed(self, results: Any, start: int) -> list[set[int]]:
        """The places of parameters that each result has gradients for, from `start` on."""
        torch, places = self.torch, dict(enumerate(self.module.parameters(), start))
        places = {place: each for place, each in places.items() if each.requires_grad}
        rows = [
            torch.autograd.grad(
                *(result, [*places.values()], torch.ones_like(result)),
                retain_graph=True,
                allow_unused=True,
            )
            if result.requires_grad
            else ()
            for result in results
        ]
        return [{n for n, each in zip(places, row) if each is not None} for row in rows]

    def _begin_backward(self, call: Any, needed: list[set[int]], given: Any) -> set[int]:
        """Have gradients of before lie where no graph writes: parameters take those of a replay as
        they are. The places of parameters that get none from the gradients of results. Raises
        RuntimeError in a second pass, or one of a call before the newest."""
        if call is not self.newest:
            raise RuntimeError("a graph has overwritten what this backward pass needs")
        self.is_waiting, self.newest = False, None
        held = [(p, p.grad) for p in self.parameters if p.grad is not None]
        late = [(p, grad) for p, grad in held if self.own.get(id(p)) != grad.data_ptr()]
        if late:
            with self.torch.no_grad():
                copies = self.torch._foreach_mul([grad for _, grad in late], 1)
            for own, (parameter, _) in zip(copies, late):
                parameter.grad, self.own[id(parameter)] = own, own.data_ptr()
        rows = (row for row, gradient in zip(needed, given) if gradient is not None)
        return set[int]().union(*needed).difference(*rows)

    def _captured_inference(self, function: Any, samples: Any) -> Any:
        torch = self.torch
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = function(*samples)

        def replay(*inputs: Any) -> Any:
            with torch.no_grad():
                for sample, value in zip(samples, inputs):
                    sample.copy_(value)
            graph.replay()
            return self.program.copied(outputs)

        return replay
