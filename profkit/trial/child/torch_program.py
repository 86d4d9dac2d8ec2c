"""Hooks into a torch program: where its steps end, what they compute, what switches may change."""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .record import Record

_SAMPLE = 64  # elements of a result that are kept, chosen: enough to see a permutation
_SEQUENCES = 8  # of a call of generate that are kept, chosen: as many as a batch of a server
_EVERY = 10  # calls from one kept output to the next, chosen: 0.1% of a step of 10 ms each
_FIRST_OUTPUTS = 5  # calls whose outputs are all kept
_DEPTH = 4  # in which a tensor of an output is looked for, chosen: objects may refer to themselves
_FOLLOWED = 1, 4  # steps between which parameters are followed, chosen: before those that count
_MOVED = 4096  # elements of an optimizer's parameters that are followed, chosen
_SETTLED_STEPS = 3  # optimizer steps after which no new outermost module is looked for
_PATIENCE = 10  # steps of another optimizer, chosen, after which the first has had its time
_LOOKS = 8  # at what input is read from, chosen: in two epochs
_OPTIMIZERS = 4  # whose parameters are summed up at the end, chosen: more would keep much memory
_OPTIONS = {"fused": "unfused-optimizer", "foreach": "single-tensor-optimizer"}
"""The feature that an optimizer without an option adds."""
_SETTLED_CALLS = 20  # the same, of calls in a row


class _Uncopied:
    """A function that is None in copies of what has it, pickled too."""

    is_adopted = True

    def __init__(self, function: Any) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        return type(None), ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _called_module() -> Any:
    """The module whose `__call__` has called the caller; None where something else has."""
    frame = sys._getframe(2)
    if isinstance(frame.f_locals.get("self"), _Uncopied) and frame.f_back:
        frame = frame.f_back
    called = frame.f_locals.get("self")
    return called if hasattr(called, "_call_impl") else None


class TorchProgram:
    """The program's torch. `changes` take and return the arguments of outermost modules; `wrappers`
    replace what they call: function of module and callable that returns a callable. `generation`
    takes and returns the options of `generate`."""

    def __init__(self, torch: Any, record: Record) -> None:
        self.torch, self.record = torch, record
        self.applied = record.applied.add  # the name of a switch that found something to change
        self.changes: list[Callable[[Any, Any, Any], Any]] = []
        self.wrappers: list[Callable[[Any, Any], Any]] = []
        self.compiling: list[Callable[[Any], None]] = []  # modules, with options
        self.on_step: list[Callable[[], None]] = []
        self.generation: list[Callable[[Any], Any]] = []
        self._call = self._looking = torch.nn.Module.__call__
        self._frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
        self._compiler = getattr(self._frames, "get_eval_frame_callback", lambda: None)
        self._calls_in_a_row = 0
        self._backward = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self._is_lower = getattr(torch._C, "_is_any_autocast_enabled", torch.is_autocast_enabled)
        self._adopted: list[Any] = []
        self._adopting = threading.local()
        self._names: dict[str, int] = {}
        self._signs = time.time_ns() % 9973 + 1  # another in each run
        self._calls: dict[str, int] = {}
        self._leader: Any = None
        self._leaders: list[Any] = []
        self._waiting: dict[int, int] = {}
        self._moving: dict[int, list[Any]] = {}  # steps, parameters, their movement by optimizer
        self._patience = float(_PATIENCE)
        self._optimizers: list[Any] = []
        self._looks = 0
        self._fetched: dict[Any, Any] = {}  # what iterators of batches read, until their end
        self._steps = self._watched = self._transformed = 0
        self._is_elsewhere = False
        record.new_event = self._event
        record.finishing.append(self._finish)
        record.closing.append(self._look_again)
        record.elapsed = lambda before, after: before.elapsed_time(after) / 1e3
        record.facts["torch"] = str(torch.__version__)
        record.features.add("torch")
        self._watch_optimizers()
        self._watch_losses()
        self._watch_loaders()
        self._watch_graphs()
        self._watch_compiler()
        self._start_looking()

    def is_inference(self, module: Any) -> bool:
        """Whether no backward pass has followed calls of a module."""
        return not module.training and not self.record.features & {"backward", "optimizer"}

    def copied(self, output: Any) -> Any:
        """What a module returns, with tensors of its own."""
        from torch.utils._pytree import tree_map

        return tree_map(lambda part: part.clone() if self.torch.is_tensor(part) else part, output)

    def is_tracing(self) -> bool:
        """Whether the compiler runs this code, or a graph is being captured."""
        torch = self.torch
        compiler = getattr(torch, "compiler", None)
        if compiler is not None and compiler.is_compiling():
            return True
        return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())

    def _event(self) -> Any:
        if not self.torch.cuda.is_initialized() or self.is_tracing():
            return None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _finish(self) -> None:
        torch, facts = self.torch, self.record.facts
        self._look_again()
        if self._transformed > 0:
            self.record.features.add("transformed")
        is_training = bool(self.record.features & {"backward", "optimizer"})
        if "tokens" in self.record.results and not is_training:
            self.record.results = {"tokens": self.record.results["tokens"]}
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
            self.record.features.add("cuda")
            facts["gpu"] = torch.cuda.get_device_name()
            facts["memory"] = torch.cuda.max_memory_allocated()
            with suppress(RuntimeError):  # where old and new settings are mixed
                in_cudnn = torch.backends.cudnn.allow_tf32 and "convolution" in self.record.features
                if in_cudnn or torch.backends.cuda.matmul.allow_tf32:
                    self.record.features.add("tf32")
        self._note_options()
        groups = [group for each in self._optimizers for group in each.param_groups]
        for number, group in enumerate(groups, 1):
            with suppress(Exception):  # a device that failed, or has no float64
                self.record.results[f"parameters, group {number}"] = [self._norms(group)]
        features = self.record.features
        (features.discard if is_training else features.add)("inference")

    def _note_options(self) -> None:
        """Note what some optimizer lacks; lines to keep name one that does, the leader first."""
        facts = self.record.facts
        for option, feature in _OPTIONS.items():
            is_usual = option == "foreach" and self.torch.cuda.is_initialized()  # of None
            slow = (False,) if is_usual else (False, None)
            groups = ((type(each).__name__, each.param_groups[0]) for each in self._optimizers)
            names = [name for name, group in groups if group.get(option, True) in slow]
            if names:
                self.record.features.add(feature)
                facts["optimizer"] = min(names, key=lambda name: name != facts.get("optimizer"))

    def _norms(self, group: Any) -> Any:
        """The sum of norms of a group's parameters, but for those of several processes."""
        torch = self.torch
        norm = functools.partial(torch.linalg.vector_norm, dtype=torch.float64)
        with torch.no_grad():
            norms = (norm(each).cpu() for each in self._plain(group))
            return sum(norms) + torch.zeros(1, dtype=torch.float64)

    def _plain(self, group: Any) -> list[Any]:
        """A group's parameters, but for those of several processes."""
        return [each for each in group["params"] if type(each.data) is self.torch.Tensor]

    # Steps

    def _watch_optimizers(self) -> None:
        from torch.optim import Optimizer, optimizer

        if hasattr(optimizer, "register_optimizer_step_pre_hook"):
            optimizer.register_optimizer_step_pre_hook(self._uncompiled(self._stepping))
            optimizer.register_optimizer_step_post_hook(self._uncompiled(self._stepped))
        zero_grad, note = Optimizer.zero_grad, self._uncompiled(self.record.features.add)

        @functools.wraps(zero_grad)
        def watched(zeroed: Any, set_to_none: bool = True) -> None:
            if not set_to_none:
                note("zeroed-gradients")
            zero_grad(zeroed, set_to_none)

        Optimizer.zero_grad = watched

    def _stepping(self, optimizer: Any, *_: Any) -> None:
        """Note from where a step moves parameters that is followed: what else moves them, such as
        the noise of Langevin dynamics, is no update."""
        if id(optimizer) not in self._moving and len(self._optimizers) < _OPTIMIZERS:
            self._optimizers.append(optimizer)
            self._moving[id(optimizer)] = [0, None, 0.0]
        with suppress(Exception):  # of a kind that can't be sampled, or has other attributes
            known = self._moving[id(optimizer)]
            if known[0] < _FOLLOWED[1] and not self.is_tracing():
                known[0] += not float(getattr(optimizer, "found_inf", None) or 0)  # not skipped
                known[1] = self._sampled_parameters(optimizer) if known[0] > _FOLLOWED[0] else None

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        self.record.features.add("optimizer")
        with suppress(Exception):  # as in `_stepping`
            self._follow(optimizer)
        self._waiting[id(optimizer)] = self._waiting.get(id(optimizer), 0) + 1
        if self._leader is None or self._waiting[id(optimizer)] > self._patience:
            if any(known() is optimizer for known in self._leaders):  # they take turns
                self._patience = float("inf")
            self._leaders.append(weakref.ref(optimizer))
            self._leader = id(optimizer)
            self.record.restart("optimizer")
            self._steps = self._calls_in_a_row = 0  # of another model, perhaps
            self.torch.nn.Module.__call__ = self._looking
            self.record.facts["optimizer"] = type(optimizer).__name__
        if id(optimizer) == self._leader:
            if len(self._waiting) > 1:
                self.record.features.add("optimizers")
            self._waiting.clear()
            self.record.mark("optimizer")
            for function in self.on_step:
                function()
            self._steps += 1
            if self._steps == _SETTLED_STEPS:
                self._stop_looking()

    def _follow(self, optimizer: Any) -> None:
        """Keep by how much some of an optimizer's steps have moved its parameters."""
        known = self._moving[id(optimizer)]
        if known[1] is not None:
            known[1:] = None, known[2] + self._sampled_parameters(optimizer) - known[1]
            if known[0] == _FOLLOWED[1]:
                series = f"updates by optimizer {self._optimizers.index(optimizer) + 1}"
                self.record.result(series, lambda: known[2])

    def _sampled_parameters(self, optimizer: Any) -> Any:
        """Elements of all parameters of an optimizer, but for those of several processes."""
        plain = [each for group in optimizer.param_groups for each in self._plain(group)]
        plain = list(filter(self.torch.is_floating_point, plain))
        most = min(max(_MOVED // len(plain), 1), _SAMPLE)
        return self.torch.cat([self._sample(each, most).double().cpu() for each in plain])

    def _uncompiled(self, function: Callable[..., Any]) -> Callable[..., None]:
        """A function that does nothing in code that is traced, and is not compiled elsewhere."""
        set_frame = getattr(self._frames, "set_eval_frame", None)
        if set_frame is None:
            return function
        is_compiling = self.torch.compiler.is_compiling

        def run(*args: Any) -> None:
            if is_compiling():
                return
            before = set_frame(None)
            try:
                function(*args)
            finally:
                set_frame(before)

        return run

    def _watch_compiler(self) -> None:
        """Calls of compiled functions are units as forwards of modules are."""
        torch, ended = self.torch, self._uncompiled(self._called)
        original = getattr(torch, "compile", None)
        if original is None:
            return

        def noted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            handler: Any = getattr(sys.modules.get("torch._dynamo"), "callback_handler", None)
            if handler is not None and self._note_compiled not in handler.end_callbacks:
                handler.end_callbacks.append(self._note_compiled)
            return result

        @functools.wraps(original)
        def compiled(function: Any = None, *args: Any, **kwargs: Any) -> Any:
            if function is None:
                return lambda function: compiled(function, *args, **kwargs)
            is_module = isinstance(getattr(function, "__self__", function), torch.nn.Module)
            result = noted(function, *args, **self._options(kwargs) if is_module else kwargs)
            if is_module:
                return result  # whose calls are units by themselves
            kind = f"calls of {getattr(function, '__name__', type(function).__name__)}"

            @functools.wraps(result)
            def called(*args: Any, **kwargs: Any) -> Any:
                if self.is_tracing():
                    return result(*args, **kwargs)
                with self._looking_no_further():
                    output = result(*args, **kwargs)
                ended(kind, output)
                return output

            return called

        torch.compile, self.compile = compiled, noted

    def _options(self, options: Any) -> Any:
        """Those with which a module is compiled."""
        if any(map(options.get, ("mode", "options", "backend"))):
            self.record.features.add("compilation-options")
        for change in self.compiling:
            change(options)
        return options

    def may_have_compiled(self) -> bool:
        """Whether something was compiled, or there is no telling."""
        handler = getattr(sys.modules.get("torch._dynamo"), "callback_handler", None)
        is_heard = self._note_compiled in getattr(handler, "end_callbacks", ())
        return not is_heard or bool(self.record.compiled)

    def _note_compiled(self, *_: Any) -> None:
        self.record.compiled.append(time.perf_counter_ns())

    def _watch_graphs(self) -> None:
        graph = getattr(self.torch.cuda, "CUDAGraph", None)
        if graph is None or not hasattr(graph, "replay"):
            return
        replay = graph.replay

        @functools.wraps(replay)
        def marked(captured: Any) -> Any:
            self.record.features.add("graph")
            result = replay(captured)
            self.record.mark("graph replay")
            return result

        graph.replay = marked

    def watch_generation(self, module: Any) -> None:
        """Hook into `generate` of transformers' models; `module` is that of its mixin."""
        mixin, record = module.GenerationMixin, self.record
        generate = mixin.generate

        @functools.wraps(generate)
        def marked(model: Any, *args: Any, **kwargs: Any) -> Any:
            record.features.add("generate")
            record.marks.setdefault("generate", [])  # until it ends, no other kind is the leading
            for change in self.generation:
                kwargs = change(kwargs)
            output = generate(model, *args, **kwargs)
            tokens = getattr(output, "sequences", output)
            if self.torch.is_tensor(tokens):
                inputs: Any = args[0] if args else kwargs.get("inputs", kwargs.get("input_ids"))
                is_decoder = not getattr(model.config, "is_encoder_decoder", False)
                known = inputs.shape[-1] if is_decoder and self.torch.is_tensor(inputs) else 0
                for row in tokens[:_SEQUENCES, known : known + _SAMPLE]:
                    record.result("tokens", row.clone)
                record.mark("generate", max(tokens.shape[-1] - known, 1))
            return output

        mixin.generate = marked

    # Results

    def _sample(self, value: Any, most: int = _SAMPLE) -> Any:
        flat = value.detach().reshape(-1)
        return flat[:: max(1, flat.numel() // most)][:most].clone()

    def _watch_losses(self) -> None:
        record, autograd, backward = self.record, self.torch.autograd, self.torch.Tensor.backward

        def differentiated(tensor: Any) -> None:
            if "backward" not in record.features:  # what was evaluated first is trained now
                for known in self._adopted:
                    if (module := known()) is not None:
                        self._look_at(module)
            record.features.add("backward")
            if tensor is not None and not self.is_tracing():
                record.result("losses", lambda: self._sample(tensor))

        note, look = self._uncompiled(differentiated), self._uncompiled(record.look)

        @functools.wraps(backward)
        def watched(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            note(tensor)
            result = backward(tensor, *args, **kwargs)
            look()
            return result

        def noted(function: Any, place: int) -> Any:
            @functools.wraps(function)
            def run(*args: Any, **kwargs: Any) -> Any:
                note(None)
                if kwargs.get("create_graph") or any(args[place : place + 1]):
                    record.features.add("second-derivatives")
                return function(*args, **kwargs)

            return run

        self.torch.Tensor.backward = watched
        autograd.backward = noted(autograd.backward, 3)  # the place of create_graph
        autograd.grad = noted(autograd.grad, 4)

    def _called(self, kind: str, output: Any) -> None:
        """A module or a compiled function was called by the program, or again by a checkpoint."""
        if self._backward() >= 0:
            return
        if self._is_lower():
            self.record.features.add("autocast")
        self._calls[kind] = call = self._calls.get(kind, -1) + 1
        is_due = call % _EVERY == 0 and "backward" not in self.record.features
        if call < _FIRST_OUTPUTS or is_due:
            tensor = self.first_tensor(output)
            if tensor is not None and not self.is_tracing():
                self.record.result(kind, lambda: self._sample(tensor))
        self.record.mark(kind)

    def first_tensor(self, value: Any, depth: int = _DEPTH) -> Any:
        """The first floating-point tensor of an output, in depth; None without one."""
        if self.torch.is_tensor(value):
            return value if value.is_floating_point() else None
        if isinstance(value, dict):
            value = list(value.values())
        if not isinstance(value, (list, tuple)):
            value = list(vars(value).values()) if hasattr(value, "__dict__") else []
        tensors = (self.first_tensor(part, depth - 1) for part in value[: _SAMPLE * (depth > 0)])
        return next((tensor for tensor in tensors if tensor is not None), None)

    # Input

    def _look_at_input(self, batches: Any) -> None:
        """Note whether what batches are read from has changed since the last look at it."""
        contents = self.record.state(batches._dataset, batches._collate_fn, is_own=True)
        if self.record.difference(self._fetched.get(batches, contents), contents):
            self.record.note("changing-dataset")
        self._fetched[batches] = contents
        self._looks += 1

    def _look_again(self) -> None:
        """Look at the input of epochs that were looked at and have not come to their end."""
        for batches in [*self._fetched]:
            self._look_at_input(batches)

    def _watch_loaders(self) -> None:
        from torch.utils.data import dataloader

        iterator = dataloader._BaseDataLoaderIter
        following = iterator.__next__

        @functools.wraps(following)
        def timed(self_: Any) -> Any:
            number = 0 if getattr(self_, "_num_workers", 1) else self_._num_yielded
            if number in (1, 2) and self._looks < _LOOKS:  # with the first, files may be opened
                self._look_at_input(self_)
            before = time.perf_counter_ns()
            is_elsewhere, self._is_elsewhere = self._is_elsewhere, True
            try:
                return following(self_)
            except StopIteration:
                if self_ in self._fetched:
                    self._look_at_input(self_)
                    del self._fetched[self_]
                raise
            finally:
                if number == 1 and self_ in self._fetched:
                    self._look_at_input(self_)
                self._is_elsewhere = is_elsewhere
                now = time.perf_counter_ns()
                self.record.waits.append((now, (now - before) / 1e9))
                self._note_loader(self_)
                if getattr(self_, "_num_workers", 0):
                    self.record.features.add("loader-workers")

        iterator.__next__ = timed
        if self.record.plan["perturb"] == "random":
            next_index = iterator._next_index

            @functools.wraps(next_index)
            def drawing(self_: Any) -> Any:  # the order of samples stays, what is done to them not
                index = next_index(self_)
                iterator._next_index = next_index  # once
                self._draw()
                return index

            iterator._next_index = drawing

    def _note_loader(self, batches: Any) -> None:
        """Note a loader, and whether all are of datasets without indices."""
        is_iterated = getattr(batches, "_dataset_kind", 0) != 0
        if is_iterated and "loader" not in self.record.features:
            self.record.features.add("iterated-dataset")
        elif not is_iterated:
            self.record.features.discard("iterated-dataset")
        self.record.features.add("loader")

    def _draw(self) -> None:
        """Draw a random number of each generator that a dataset may use."""
        import random

        random.random()
        self.torch.rand(1)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.rand()

    # Outermost modules

    def _start_looking(self) -> None:
        """Until outermost modules are known, calls of modules pass through `looking`; inside of
        them, and after that, torch is as it was."""
        program, module = self, self.torch.nn.Module
        if not hasattr(module, "_compiled_call_impl"):
            return

        in_worker = self.torch.utils.data.get_worker_info

        def looking(called: Any, *args: Any, **kwargs: Any) -> Any:
            if program.is_inside():  # first: the compiler can't trace the rest
                return program._call(called, *args, **kwargs)
            is_again = program._backward() >= 0  # a checkpoint's part
            if is_again or program._is_elsewhere or in_worker() is not None:
                return program._call(called, *args, **kwargs)
            program._calls_in_a_row += 1
            with program._looking_no_further():
                if not getattr(called._compiled_call_impl, "is_adopted", False):
                    program._adopt(called)
                    program._calls_in_a_row = 0
                return program._call(called, *args, **kwargs)

        module.__call__ = self._looking = looking

    @contextmanager
    def _looking_no_further(self) -> Iterator[None]:
        """Below an outermost module, or in compiled code, torch is as it was."""
        self._stop_looking()
        try:
            yield
        finally:
            if self._steps < _SETTLED_STEPS and self._calls_in_a_row < _SETTLED_CALLS:
                self.torch.nn.Module.__call__ = self._looking

    def is_inside(self) -> bool:
        """Whether compiled code is run, or code is traced."""
        if self.is_tracing():  # first: the compiler leaves out the rest
            return True
        return self._compiler() is not None or self.torch._C._get_tracing_state() is not None

    def _stop_looking(self) -> None:
        """Have torch as it was; the compiler compares with what `__call__` was at its import."""
        self.torch.nn.Module.__call__ = self._call
        for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
            loaded: Any = sys.modules.get(name)
            if loaded is not None and hasattr(loaded, "unpatched_nn_module_call"):
                loaded.unpatched_nn_module_call = self._call

    def _adopt(self, module: Any) -> None:
        """Have the calls of an outermost module pass through this program."""
        name = type(module).__name__
        self._names[name] = number = self._names.get(name, 0) + 1
        kind = f"forward of {name}" + (f" {number}" if number > 1 else "")
        self._look_at(module)
        self._adopted.append(weakref.ref(module))
        compiled = module._compiled_call_impl
        original = call = module._call_impl if compiled is None else compiled
        if self.record.plan["perturb"] in ("rounding", "precision"):
            self._perturb(module)
        for wrapper in self.wrappers:
            call = wrapper(module, call)

        def adopted(*args: Any, **kwargs: Any) -> Any:
            if self.is_inside() or getattr(self._adopting, "is_busy", False):
                return original(*args, **kwargs)  # as when it was built, part of another now
            if (copy := _called_module()) not in (None, module):
                return copy._call_impl(*args, **kwargs)  # its attributes are copied with this one
            for change in self.changes:
                args, kwargs = change(module, args, kwargs)
            is_watched = module.training and self._watched < _FIRST_OUTPUTS
            self._watched += is_watched
            before = self._random_state() if is_watched else None
            is_transformed = self._is_transformed()
            self._transformed += 1 if is_transformed else -1  # more calls than others
            self._adopting.is_busy = True
            try:
                output = (original if is_transformed else call)(*args, **kwargs)
            finally:
                self._adopting.is_busy = False
            if is_watched and self._random_state() != before:
                self.record.features.add("dropout")
            self._called(kind, output)
            return output

        adopted.is_adopted = True  # type: ignore[attr-defined]
        # Not by assignment, which OptimizedModule hands on to the module in it. torch's own copies
        # leave it out; scripts need a function.
        copies = ("__getstate__", "__reduce_ex__", "__reduce__", "__deepcopy__")
        owners = (type(module), self.torch.nn.Module)
        is_own = any(len({getattr(owner, name, None) for owner in owners}) > 1 for name in copies)
        module.__dict__["_compiled_call_impl"] = _Uncopied(adopted) if is_own else adopted

    def _is_transformed(self) -> bool:
        """Whether derivatives are computed forward, or a transformation of functions runs."""
        forward_ad = self.torch.autograd.forward_ad
        return forward_ad._current_level >= 0 or bool(
            self.torch._C._functorch.peek_interpreter_stack()
        )

    def _look_at(self, module: Any) -> None:
        """Note the features of a module that switches need."""
        torch, features = self.torch, self.record.features
        features.add("module")
        dtypes = {parameter.dtype for parameter in module.parameters()}
        features.update(str(dtype).replace("torch.", "") for dtype in dtypes)
        for part in module.modules():
            if isinstance(part, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)):
                features.add("convolution")
                if isinstance(part, torch.nn.Conv2d):
                    features.add("convolution-2d")
            if "attention" in type(part).__name__.lower() or "Attn" in type(part).__name__:
                features.add("attention")
            own = getattr(part._compiled_call_impl, "is_adopted", part._compiled_call_impl is None)
            if type(part).__name__ == "OptimizedModule" or not own:
                features.add("compiled")

    def _random_state(self) -> Any:
        """The generators' states, which dropout of any kind changes; None where there are none."""
        torch = self.torch
        with suppress(Exception):  # where tensors have no numbers
            states = [torch.get_rng_state()]
            if torch.cuda.is_initialized() and not self.is_tracing():
                states.append(torch.cuda.get_rng_state())
            return [state.tolist() for state in states]
        return None

    def _perturb(self, module: Any) -> None:
        """Change parameters by one rounding error, of other signs in each run, or round them to
        bfloat16 after an eighth of one, and change the device's random numbers."""
        torch = self.torch
        is_lower = self.record.plan["perturb"] == "precision"
        with torch.no_grad():
            for parameter in filter(torch.is_floating_point, module.parameters()):
                place = torch.arange(parameter.numel(), device=parameter.device)
                sign = (place * self._signs >> 10) % 2 * 2 - 1
                eps = torch.finfo(torch.bfloat16 if is_lower else parameter.dtype).eps
                error = sign.to(parameter.dtype) * (eps / (8 if is_lower else 1))
                parameter.mul_(1 + error.reshape(parameter.shape))
                if is_lower:
                    parameter.copy_(parameter.bfloat16())
        if torch.cuda.is_initialized():
            torch.rand(1, device="cuda")
            parts = (part for part in module.modules() if isinstance(part, torch.nn.RNNBase))
            if any(part.dropout for part in parts):  # cuDNN has random numbers of its own
                recurrent = torch.nn.LSTM(1, 1, 2, dropout=0.5, device="cuda")
                recurrent.forward(torch.zeros(1, 1, 1, device="cuda"))
        elif "dropout" in self.record.plan["features"]:
            torch.rand(1)
