"""Hooks into a JAX program: calls of jitted functions and of gradients, and their outputs."""

from __future__ import annotations

import functools
import gc
import os
import sys
from contextlib import suppress
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, signature
from types import CodeType, FunctionType
from typing import Any, Callable

from .record import PREPARING, Record, installed
from .state import is_own

_FIRST_OUTPUTS = 5  # calls of a function whose outputs are kept
_FEWEST = 15  # elements of arrays that are no weights, chosen: metrics
_SAMPLE = 64  # elements of an output that are kept, as of torch's
_AHEAD = 3  # calls that Python may be ahead of the device, so that times are the device's
_LOCAL = 4  # gradients of functions within functions that are known, chosen: each keeps its data
_GRADIENTS = "gradients"
_SERIES = ("calls of ", _GRADIENTS)
_OF_TF32 = (None, "default", "tensorfloat32")  # which JAX multiplies with, from Ampere on
_COMPILED = "/backend_compile_duration"  # as an event of jax.monitoring ends


class Watched:
    """A jitted function, or a gradient, whose calls from Python are recorded."""

    def __init__(self, program: JaxProgram, function: Any, kind: str) -> None:
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = getattr(function, "__wrapped__", function)
        self.program, self.function, self.kind, self.calls = program, function, kind, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __copy__(self, *_: Any) -> Any:
        return self

    __deepcopy__ = __copy__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = self.program
        if not program.is_running():
            return self.function(*args, **kwargs)
        output = self.run(args, kwargs)
        if not program.is_inside:
            program.called(self.kind, self.calls, output)
        self.calls += 1
        return output

    def run(self, args: Any, kwargs: Any) -> Any:
        args, kwargs = self.program.moved(self.calls, (args, kwargs))
        return self.function(*args, **kwargs)


class Caller(Watched):
    """A function that calls gradients, none of which is recorded by itself. One that calls one of
    them several times, as a loop does, is no step: it goes on as it was."""

    is_step = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_step:
            return super().__call__(*args, **kwargs)
        return self.__wrapped__(*args, **kwargs)

    def run(self, args: Any, kwargs: Any) -> Any:
        program = self.program
        before, program.is_inside = program.is_inside, True
        try:
            return super().run(args, kwargs)
        finally:
            program.is_inside = before


class Gradient(Watched):
    """A gradient. From its next call on, the function that asked for it is recorded in its place,
    so that it may be jitted as a whole; where that isn't possible, the gradient may be."""

    of: Any = None  # the code of what is differentiated
    code = ""  # what the program calls to have it

    def run(self, args: Any, kwargs: Any) -> Any:
        program = self.program
        if not program.is_inside:
            program.note_caller(sys._getframe(2).f_code, self)
        if self.calls == 1:
            self.function = program.faster(self.function, self.code)
        return super().run(args, kwargs)


def _function_of(code: CodeType) -> FunctionType | None:
    """The program's own function that has a code; None where several have it, or it returns before
    its end."""
    if code.co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR):
        return None
    holders = [each for each in gc.get_referrers(code) if isinstance(each, FunctionType)]
    return holders[0] if len(holders) == 1 and is_own(holders[0]) else None


def _redirect(function: FunctionType, name: str) -> FunctionType:
    """Have a function call a global of its module in its place; returns it as it was."""
    code = function.__code__
    place: Any = {}
    exec(f"def call(*args, **kwargs): return {name}(*args, **kwargs)", place)
    parts = function.__globals__, code.co_name, function.__defaults__, function.__closure__
    was = FunctionType(code, *parts)
    was.__kwdefaults__ = function.__kwdefaults__
    # As many variables of outer functions as the function has, which its new code leaves alone.
    function.__code__ = place["call"].__code__.replace(
        co_freevars=code.co_freevars, co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )  # fmt: skip
    function.__signature__ = signature(was)  # type: ignore[attr-defined]
    return was


def _arguments(function: Any, args: Any, kwargs: Any) -> str:
    """Those of a transformation as a program writes them; "..." for what has no name."""
    name = getattr(function, "__name__", "")
    words = (*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items()))
    return ", ".join((name if name.isidentifier() else "...", *words))


def _is_real_number(leaf: Any) -> bool:
    is_real = isinstance(leaf, float) or "float" in str(getattr(leaf, "dtype", ""))
    return is_real and getattr(leaf, "size", 1) == 1


class JaxProgram:
    """The program's jax. `options` change the keyword arguments of `jax.jit` for a function;
    `faster` takes what computes a gradient, or calls it, with its code, and returns it; `after` are
    called after the import of a library."""

    def __init__(self, jax: Any, record: Record) -> None:
        self.jax, self.record = jax, record
        self.applied = record.applied.add  # the name of a switch that found something to change
        self.options: list[Callable[[Any, Any], None]] = []
        self.faster: Callable[[Any, str], Any] = lambda function, code: function
        self.is_inside = False
        self.callers: dict[CodeType, tuple[Caller | None, list[Any]]] = {}
        self.after: dict[str, list[Callable[[Any], None]]] = {}
        self.outputs: list[tuple[str, Any]] = []
        record.finishing.append(self._finish)
        self.jit = jax.jit
        for name in ("jit", "pmap"):
            if hasattr(jax, name):
                setattr(jax, name, self._watching(getattr(jax, name)))
        for name in ("grad", "value_and_grad"):
            setattr(jax, name, self._watched_gradient(getattr(jax, name), name))
        eval_shape = jax.eval_shape

        @functools.wraps(eval_shape)
        def shape(function: Any, *args: Any, **kwargs: Any) -> Any:
            """Static arguments are those of jax's own jitted functions."""
            own = function.function if isinstance(function, Watched) else function
            return eval_shape(own, *args, **kwargs)

        jax.eval_shape = shape
        with suppress(ImportError):
            from jax import monitoring

            monitoring.register_event_duration_secs_listener(self._note_duration)

    def note_caller(self, code: CodeType, gradient: Gradient) -> None:
        """Code that is not recorded calls a gradient: the next time, its function is."""
        if code in self.callers:
            caller, known = self.callers[code]
            if caller and gradient.of in known:
                caller.is_step = False
            known.append(gradient.of)
            return
        caller = None
        if function := _function_of(code):
            name = f"_profkit_caller_{len(self.callers)}"
            was = _redirect(function, name)
            caller = Caller(self, self.faster(was, was.__name__), gradient.kind)
            caller.__wrapped__, caller.calls = was, 1
            function.__globals__[name] = caller
        self.callers[code] = caller, [gradient.of]

    def moved(self, call: int, args: Any) -> Any:
        """The arguments of a function's first call, in a perturbed run by one rounding error."""
        if call or self.record.plan["perturb"] != "rounding" or not self.is_running():
            return args
        numpy = self.jax.numpy

        def moved(leaf: Any) -> Any:
            dtype, is_array = getattr(leaf, "dtype", None), hasattr(leaf, "block_until_ready")
            if is_array and numpy.issubdtype(dtype, numpy.floating):
                return leaf * (1 + float(numpy.finfo(dtype).eps))
            return leaf

        with suppress(ValueError, TypeError):  # of what is no tree
            return self.jax.tree_util.tree_map(moved, args)
        return args

    def is_running(self) -> bool:
        """Whether no function is being traced."""
        context = getattr(sys.modules.get("jax._src.core"), "trace_ctx", None)
        if context is not None and hasattr(context, "is_top_level"):
            return bool(context.is_top_level())
        return not isinstance(self.jax.numpy.zeros(()), self.jax.core.Tracer)

    def called(self, kind: str, call: int, output: Any) -> None:
        """A function was called by the program."""
        self.record.features.add("jax")
        self.outputs.append((kind, output))
        if len(self.outputs) > _AHEAD:
            self._wait(self.outputs.pop(0)[1])
        if call < _FIRST_OUTPUTS:
            leaves = self.jax.tree_util.tree_leaves(output)
            dtypes = {str(getattr(leaf, "dtype", "")) for leaf in leaves}
            self.record.features.update(dtypes & {"bfloat16", "float16"})
            if kind == _GRADIENTS:  # jitted, numbers of Python are arrays too
                leaves = [leaf for leaf in leaves if _is_real_number(leaf)][:1] or leaves
            for number, leaf in enumerate(leaves[-3:]):
                if getattr(leaf, "size", 0) or isinstance(leaf, float):
                    self.record.result(f"{kind} {number}", functools.partial(self._sample, leaf))
        self.record.mark(kind)
        if len(self.record.marks.get(kind, ())) == PREPARING:
            self._end_cache()

    def _end_cache(self) -> None:
        """Have what compiles in units that count take its time, but with a cache of the user's."""
        own = os.path.dirname(os.environ.get("PROFKIT_KEPT", ""))
        if own and os.path.dirname(str(self.jax.config.jax_compilation_cache_dir)) == own:
            from jax.experimental.compilation_cache import compilation_cache

            self.jax.config.update("jax_enable_compilation_cache", False)
            compilation_cache.reset_cache()

    def _note_duration(self, event: str, seconds: float, **_: Any) -> None:
        """Add up what compiles, or is read from its cache."""
        if event.endswith(_COMPILED):
            self.record.facts["compiling"] = seconds + self.record.facts.get("compiling", 0.0)

    def _wait(self, output: Any) -> None:
        """Until an output is computed; what was donated since is gone."""
        for leaf in self.jax.tree_util.tree_leaves(output):
            if hasattr(leaf, "is_deleted") and not leaf.is_deleted():
                leaf.block_until_ready()
                return

    def _norms(self, output: Any) -> list[Any]:
        """The norms of the arrays of an output, unless there is one that was donated since."""
        numpy, leaves = self.jax.numpy, self.jax.tree_util.tree_leaves(output)
        with suppress(Exception):  # of other processes' devices, or deleted
            many = [leaf for leaf in leaves if getattr(leaf, "size", 0) > _FEWEST]
            return [numpy.linalg.norm(leaf.reshape(-1)) for leaf in many]
        return []

    def _sample(self, leaf: Any) -> Any:
        if isinstance(leaf, float):
            return self.jax.numpy.asarray([leaf])
        return leaf.reshape(-1)[:: max(1, leaf.size // _SAMPLE)][:_SAMPLE] + 0

    def _watching(self, transform: Any) -> Any:
        @functools.wraps(transform)
        def transformed(function: Any = None, *args: Any, **options: Any) -> Any:
            if function is None:
                return functools.partial(transformed, *args, **options)
            for change in self.options:
                change(function, options)
            kind = f"calls of {getattr(function, '__name__', type(function).__name__)}"
            if str(getattr(function, "__module__", "")) in installed():
                self.record.secondary.add(kind)
            return Watched(self, transform(function, *args, **options), kind)

        return transformed

    def _watched_gradient(self, transform: Any, name: str) -> Any:
        known: dict[Any, Any] = {}  # a loop may ask for the same in each step
        local: list[Any] = []

        @functools.wraps(transform)
        def transformed(fun: Any, *args: Any, **kwargs: Any) -> Any:
            key = (id(fun), repr((args, sorted(kwargs.items()))))
            if key in known:
                return known[key]
            gradient = transform(fun, *args, **kwargs)
            known[key] = watched = Gradient(self, gradient, _GRADIENTS)
            watched.of = getattr(fun, "__code__", None)
            watched.code = f"jax.{name}({_arguments(fun, args, kwargs)})"
            if not isinstance(fun, FunctionType) or "<locals>" in fun.__qualname__:
                local.append(key)  # of an outer call, which has ended perhaps
                if len(local) > _LOCAL:
                    known.pop(local.pop(0), None)
            return watched

        return transformed

    def _finish(self) -> None:
        record = self.record
        if "jax" not in record.features:
            return  # imported, and not used
        for _, output in self.outputs:
            self._wait(output)
        unit = record.plan["unit"] or record.leading(least=2)
        ends = [output for kind, output in self.outputs if kind == unit != _GRADIENTS]
        if norms := self._norms(ends[-1:]):
            record.results[f"parameters, {unit}"] = [self.jax.numpy.stack(norms)]
        series = {name for name in record.results if name.startswith(_SERIES)}
        own = {name for name in series if name.startswith(unit)}
        if not unit:  # what libraries have jitted may be inside of what else is
            own = {name for name in own if name.rpartition(" ")[0] not in record.secondary}
        for name in series - own if own else ():
            del record.results[name]
        record.facts["jax"] = str(self.jax.__version__)
        backend = str(self.jax.default_backend()).replace("gpu", "cuda")
        record.features.add(backend)
        if backend == "cuda" and self.jax.config.jax_default_matmul_precision in _OF_TF32:
            record.features.add("tf32")
