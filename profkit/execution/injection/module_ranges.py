"""NVTX ranges around the modules of a torch program, their backward and its optimizers.

Any Python from 3.9 on loads this file beside the program, without profkit
(`profkit.execution.injection`). The first calls of each outermost module have ranges, so that the
steps that are timed have none; then `Module.__call__` is torch's own again, until a module is
constructed. The first step of an optimizer starts the counts again: what ran before was another
program. Where PROFKIT_MODULE_CALLS
is 0 all calls have ranges.

Names are "profkit-modules:later:forward:Net.layers.*.mlp (MLP)"; `first` in place of `later` where
an autotuner may run. Backward work is named by hooks of graph nodes, which run in the order of the
forward reversed: a module's range lasts from its last node to the next module's. Modules inside
compiled code have no ranges. What all ranges have cost the host so far is the name of a range,
too: "profkit-modules:cost:RANGES:NS".
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from time import perf_counter_ns
from typing import Any, Callable
from weakref import WeakKeyDictionary, WeakSet

_MODULES = 300  # of an outermost one, chosen: deeper ones are in the ranges of these
_RANGES = 1_000  # in a call, chosen: modules that are called in a loop end here
_QUIET = 16  # calls of modules with parameters without ranges, chosen: all are known then. Until
# then a module's call takes 0.5 us more: 2% of one that takes 25 us on the host
_PATIENCE = 2_000  # the same calls where one that was constructed has not been called, chosen
_TENSORS = 8  # of an input or output that are looked at
_WRAPPED = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
}
_HIDDEN = {"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"}
_FORWARD, _BACKWARD, _OPTIMIZER = "forward", "backward", "optimizer"
_programs: Any = {}


class _Thread(threading.local):
    """The ranges that are open on a thread, innermost last: names of modules, or what else.

    `is_named` is None outside of outermost modules, `ranges` and `nodes` are of the present one.
    `task` is the number of the backward whose end is awaited.
    """

    def __init__(self) -> None:
        self.open: list[str] = []
        self.is_named: bool | None = None
        self.call = "later"
        self.ranges = 0
        self.task = -1
        self.nodes: set[int] = set()


class ModuleRanges:
    """Names the modules of a program in the first `calls` of each outermost one, 0: in all."""

    def __init__(self, torch: Any, nvtx: Any, calls: int) -> None:
        self._torch, self._nvtx, self._calls = torch, nvtx, calls
        self._thread = _Thread()
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._counts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._steps: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._uncalled: WeakSet[Any] = WeakSet()
        self._quiet = self._ranges = self._spent = 0
        self._call = torch.nn.Module.__call__
        self._task = torch._C._current_graph_task_id
        self._called = self._calling()
        self._is_failed = False
        from torch.nn.modules.module import register_module_parameter_registration_hook
        from torch.optim import optimizer

        register_module_parameter_registration_hook(self._guarded(self._construct))
        optimizer.register_optimizer_step_pre_hook(self._guarded(self._optimizer_begins))
        optimizer.register_optimizer_step_post_hook(self._guarded(self._optimizer_ends))
        self._place(self._called)

    def _calling(self) -> Callable[..., Any]:
        """What stands in for `Module.__call__`; the compiler sees torch's own in it."""
        call, end, is_compiling = self._call, self._end, self._torch.compiler.is_compiling
        begin, name_nodes = self._guarded(self._begin), self._guarded(self._name_nodes)
        callback = self._torch._C._dynamo.eval_frame.get_eval_frame_callback
        trace, thread = self._torch._C._get_tracing_state, self._thread

        def called(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or thread.is_named is False:
                return call(module, *args, **kwargs)
            if callback() is not None or trace() is not None:
                return call(module, *args, **kwargs)
            begun = begin(module, args, kwargs)
            if begun is None:
                return call(module, *args, **kwargs)
            try:
                output = call(module, *args, **kwargs)
                if begun[1] is not None:
                    name_nodes(output, begun[1])
            finally:
                end(begun)
            return output

        return called

    def look_at_compiler(self) -> None:
        """Have the compiler pass over `called` to what it calls, and take it for torch's own."""
        compiler = sys.modules["torch._dynamo.eval_frame"]
        skip = getattr(compiler, "skip_code", None) or self._torch._C._dynamo.eval_frame.skip_code
        skip(self._called.__code__)
        self._place(self._torch.nn.Module.__call__)

    def _place(self, function: Any) -> None:
        """Set `Module.__call__`; the compiler compares with what it was when it was imported."""
        self._torch.nn.Module.__call__ = function
        for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
            loaded: Any = sys.modules.get(name)
            if loaded is not None and hasattr(loaded, "unpatched_nn_module_call"):
                loaded.unpatched_nn_module_call = function

    def _remove(self) -> None:
        if self._torch.nn.Module.__call__ is self._called:
            self._place(self._call)

    def _fail(self) -> None:
        """What fails here ends the names, not the program."""
        self._is_failed = True
        self._remove()
        try:
            with open(os.environ["PROFKIT_HOOK_LOG"], "a", encoding="utf-8") as log:
                log.write(f"{traceback.format_exc()}\n")
        except (KeyError, OSError):
            pass

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed; None from its first failure on, and in code that is traced."""

        def guarded(*args: Any) -> Any:
            if self._is_failed or self._torch.compiler.is_compiling():
                return None
            begun, result = perf_counter_ns(), None
            try:
                result = function(*args)
            except Exception:
                self._fail()
            self._spent += perf_counter_ns() - begun
            return result

        return guarded

    # Ranges

    def _push(self, kind: str, name: str, call: str) -> None:
        self._nvtx.rangePushA(f"profkit-modules:{call}:{kind}:{name}")
        self._thread.open.append(name if kind == _FORWARD else kind)
        self._ranges += 1

    def _pop(self) -> None:
        self._nvtx.rangePop()
        self._thread.open.pop()

    def _tell(self) -> None:
        self._nvtx.rangePushA(f"profkit-modules:cost:{self._ranges}:{self._spent}")
        self._nvtx.rangePop()

    # Modules

    def _begin(self, module: Any, args: Any, kwargs: Any) -> tuple[int, str | None, bool] | None:
        """Begin a module's call: the number of open ranges, its name, and whether it is outermost.
        None: nothing is to end."""
        thread = self._thread
        if thread.is_named and thread.ranges > _RANGES:
            return None
        is_outermost = thread.is_named is None
        if is_outermost:
            self._end_failed()
            thread.is_named = self._is_new(thread, module)
        depth, name = len(thread.open), self._names.get(module) if thread.is_named else None
        if name is None:
            return (depth, None, True) if is_outermost else None
        if not is_outermost and thread.open:
            self._name_nodes((args, kwargs), thread.open[-1])
        self._push(_FORWARD, name, thread.call)
        thread.ranges += 1
        return depth, name, is_outermost

    def _construct(self, module: Any, *_: Any) -> None:
        """A module gets a parameter: its first call is to come."""
        if type(module).__hash__ is None:
            return
        self._uncalled.add(module)
        if self._torch.nn.Module.__call__ is self._call:
            self._quiet = 0
            self._place(self._called)

    def _is_new(self, thread: _Thread, module: Any) -> bool:
        """Whether a call of an outermost module has ranges."""
        count = self._counts.get(module, 0)
        self._counts[module] = count + 1
        is_named = not self._calls or count < self._calls
        if module.__dict__.get("_is_replica") or not is_named:
            if next(module.parameters(), None) is not None:
                self._quiet += 1
                if self._quiet > (_PATIENCE if self._uncalled else _QUIET):
                    self._remove()
            return False
        self._quiet = 0
        thread.call, thread.ranges = ("later" if count else "first"), 0
        thread.nodes.clear()
        if module not in self._names:
            self._names.update(_names_of(module, self._torch))
            self._uncalled.difference_update(module.modules())
        return True

    def _end(self, begun: tuple[int, str | None, bool]) -> None:
        depth, _, is_outermost = begun
        before, thread = perf_counter_ns(), self._thread
        while len(thread.open) > depth:
            self._pop()
        self._spent += perf_counter_ns() - before
        if is_outermost:
            if thread.is_named:
                self._tell()
            thread.is_named = None

    # Backward

    def _name_nodes(self, value: Any, name: str) -> None:
        """Have the nodes that computed tensors begin a range of a name, but those that do."""
        torch, thread = self._torch, self._thread
        if not torch.is_grad_enabled() or torch._C._functorch.peek_interpreter_stack() is not None:
            return
        compiled: Any = sys.modules.get("torch._dynamo.compiled_autograd")
        if compiled is not None and compiled.compiled_autograd_enabled:
            return
        enter, call = self._guarded(self._enter), thread.call
        for tensor in _tensors(value, torch):
            node = tensor.grad_fn
            if node is not None and node._sequence_nr() not in thread.nodes:
                thread.nodes.add(node._sequence_nr())
                node.register_prehook(lambda _: enter(name, call))

    def _enter(self, name: str, call: str) -> None:
        """Backward arrives at a module: the range of the last one ends."""
        thread, task = self._thread, self._task()
        if thread.open[-1:] == [_BACKWARD]:
            self._pop()
        if thread.task != task:
            engine = self._torch.autograd.Variable._execution_engine
            engine.queue_callback(self._guarded(self._leave))
            thread.task = task
        self._push(_BACKWARD, name, call)

    def _end_failed(self) -> None:
        """End the range of a backward that raised an error, of which nothing tells."""
        if self._thread.open[-1:] == [_BACKWARD] and self._task() < 0:
            self._pop()

    def _leave(self) -> None:
        self._thread.task = -1
        if self._thread.open[-1:] == [_BACKWARD]:
            self._pop()
            self._tell()

    # Optimizers

    def _optimizer_begins(self, optimizer: Any, *_: Any) -> None:
        self._end_failed()
        count = self._steps.get(optimizer, 0)
        self._steps[optimizer] = count + 1
        if not count:
            self._counts.clear()
            self._quiet = 0
            self._place(self._called)
        if not self._calls or count < self._calls:
            name = f"{type(optimizer).__name__}.step"
            self._push(_OPTIMIZER, name, "later" if count else "first")

    def _optimizer_ends(self, *_: Any) -> None:
        if self._thread.open[-1:] == [_OPTIMIZER]:
            self._pop()
            self._tell()


def _names_of(root: Any, torch: Any) -> dict[Any, str]:
    """The names of an outermost module's parts, by its class: repeated layers have one name."""
    inner, outer = root, []
    while type(inner).__name__ in _WRAPPED:
        outer.append(inner)
        inner = getattr(inner, _WRAPPED[type(inner).__name__])
    containers = (torch.nn.ModuleList, torch.nn.ModuleDict)
    levels: dict[int, list[tuple[Any, str]]] = {}
    for path, module in inner.named_modules():
        parts = [part for part in path.split(".") if part and part not in _HIDDEN]
        name = ".".join("*" if part.isdigit() else part for part in parts)
        if type(module) not in containers:
            levels.setdefault(len(parts), []).append((module, name))
    title = type(inner).__name__
    names: dict[Any, str] = {}
    for depth in sorted(levels):
        if depth > 1 and len(names) + len(levels[depth]) > _MODULES:
            break
        for module, name in levels[depth]:
            kind = type(getattr(module, "_orig_mod", module)).__name__
            names[module] = f"{title}.{name} ({kind})" if name else title
    return {**names, **dict.fromkeys(outer, title)}


def _tensors(value: Any, torch: Any) -> list[Any]:
    """The first tensors of an input or output, in depth."""
    found: list[Any] = []
    rest = [value]
    while rest and len(found) < _TENSORS:
        each = rest.pop(0)
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif isinstance(each, dict):
            rest[:0] = list(each.values())[:_TENSORS]
        elif isinstance(each, (list, tuple)):
            rest[:0] = each[:_TENSORS]
    return found


def install(module: Any) -> None:
    """Hook into torch, or into its compiler, that has just been imported."""
    if module.__name__ == "torch":
        nvtx = getattr(module._C, "_nvtx", None)
        if nvtx is not None and hasattr(module.nn.Module, "_compiled_call_impl"):
            calls = int(os.environ["PROFKIT_MODULE_CALLS"])
            _programs["torch"] = ModuleRanges(module, nvtx, calls)
    elif "torch" in _programs:
        _programs["torch"].look_at_compiler()
