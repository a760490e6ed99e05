"""kiln.jit: traces a function once per kind of call, and runs later calls with one message.

Before each call `guards.survey` walks everything that the function can reach. Its facts are the key
of the trace; its tensors are the inputs, read anew at each call. During a trace, every reachable
tensor holds a placeholder, so that the graph cannot include a value by mistake; any other value in
the finished graph is an error, not a constant. After the trace the facts must be the same as
before: a function that changes Python state would not change it in later calls. Before the second
call a second trace must be equal to the first (`again.difference`).
"""

import functools
import threading
import types
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple, overload

from kiln._basics.errors import TraceError
from kiln._graph.matmul_precision import current_code
from kiln._graph.node import mode
from kiln._session.handles import Program, ProgramInfo
from kiln._session.tuning import checked_width
from kiln._trace import guards
from kiln._trace.again import difference
from kiln._trace.nested import with_tensors
from kiln._trace.trace import Trace

# One trace or call at a time: a trace puts placeholders into tensors that all threads see.
_lock = threading.RLock()

_WARN_AT = (8, 32, 128, 512)


class Jit:
    """A function that is traced once per kind of call. Made by `kiln.jit`.

    >>> double = kiln.jit(lambda x: x * 2)
    >>> type(double).__name__, double(kiln.ones(2)).tolist()
    ('Jit', [2.0, 2.0])
    """

    _kiln_watched = ("_function",)

    def __init__(self, function: Callable[..., Any], update: str = "fixed",
                 beam: Optional[int] = None) -> None:
        if update not in ("fixed", "live"):
            raise ValueError(f'update is "fixed" or "live", not {update!r}')
        self._function = function
        self._live = update == "live"
        self._beam = None if beam is None else checked_width(beam, "beam")
        self._traces: Dict[Any, Trace] = {}
        self._last_facts: Optional[guards.Survey] = None
        self.traces = 0  # the number of kinds of call that the function was traced for
        self._name = getattr(function, "__qualname__", type(function).__name__)
        # Without `updated=()` the function's own attributes would be copied over this object's.
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if mode.trace is not None:
            # A traced function that another one calls becomes part of that one's graph.
            return self._function(*args, **kwargs)
        with _lock:
            args = tuple([with_tensors(argument) for argument in args])
            if kwargs:
                kwargs = with_tensors(kwargs)
            survey = guards.survey(self._roots(args, kwargs))
            precision = current_code()
            key = (mode.gradients, mode.autocast, precision, *survey.guard)
            trace = self._traces.get(key)
            if trace is None:
                trace = self._trace(key, args, kwargs, precision)
                result = trace.run(survey)
                self._remember_leftovers(trace, survey, args, kwargs)
                return result
            if not trace.repeated:
                self._repeat(trace, args, kwargs)
            return trace.run(survey)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # As functions do, so that a decorated method receives its `self`.
        return self if instance is None else types.MethodType(self, instance)

    def programs(self) -> List[ProgramInfo]:
        """Returns the daemon's programs of the traces that have run, with kernels, compile times, …

        >>> double = kiln.jit(lambda x: x * 2)
        >>> _ = double(kiln.ones(2)).tolist()
        >>> len(double.programs())
        1
        """
        known = {program: connection for trace in self._traces.values()
                 for connection, programs in trace.programs.items()
                 for program, _ in programs.values()}
        return [connection.program(program.digest) for program, connection in known.items()]

    def _defined(self) -> List[Program]:
        """Returns the programs of the traces that have run, each once."""
        return [*dict.fromkeys(program for trace in self._traces.values()
                               for programs in trace.programs.values()
                               for program, _ in programs.values())]

    def _forget(self, program: Program) -> None:
        """Lets the next call define the program anew."""
        with _lock:
            program.connection._forget(program)
            for trace in self._traces.values():
                programs = trace.programs.get(program.connection, {})
                for given in [given for given, (one, _) in programs.items() if one is program]:
                    del programs[given]

    def clear(self) -> None:
        """Drops all traces.

        >>> double = kiln.jit(lambda x: x * 2)
        >>> _ = double(kiln.ones(2))
        >>> double.clear()
        """
        self._traces.clear()

    def _roots(self, args: Any, kwargs: Any) -> List[Tuple[str, Any]]:
        return [("argument", args), ("argument", kwargs), ("", self._function)]

    def _trace(self, key: Any, args: Any, kwargs: Any, precision: Any) -> Trace:
        trace = Trace(self._name, precision, self._live)
        trace.beam = self._beam
        self.traces += 1
        facts = self._record(trace, args, kwargs)
        self._traces[key] = trace
        if len(self._traces) in _WARN_AT:
            self._warn(facts)
        self._last_facts = facts
        return trace

    def _record(self, trace: Trace, args: Any, kwargs: Any) -> guards.Survey:
        # Another walk, with paths: they cost too much to be collected at every call.
        facts = guards.survey(self._roots(args, kwargs), with_paths=True)
        trace.record(self._function, args, kwargs, facts)
        self._check_unchanged(facts, guards.survey(self._roots(args, kwargs), with_paths=True))
        return facts

    def _repeat(self, trace: Trace, args: Any, kwargs: Any) -> None:
        """Traces again before the second call, to detect dependencies that are not watched."""
        again = Trace(self._name, trace.precision)
        self._record(again, args, kwargs)
        differs = difference(trace, again)
        if differs is not None:
            raise TraceError(
                f"{self._name} did something else when kiln.jit traced it again, for its second "
                f"call: {differs}. It reads something that kiln.jit cannot watch: a generator of "
                "random "
                "numbers, an iterator, a clock, a file, or a tensor of another library. Pass that "
                "as an argument, or draw with kiln.rand and its siblings")
        trace.repeated = True

    def _check_unchanged(self, before: guards.Survey, after: guards.Survey) -> None:
        place = _first_difference(before, after)
        if place is not None:
            raise TraceError(
                f"{self._name} changes {place.strip()} while kiln.jit traces it; later calls would "
                "not. Keep it in a tensor and use its assign(), or return the new value")

    def _remember_leftovers(self, trace: Trace, before: guards.Survey, args: Any,
                            kwargs: Any) -> None:
        # A gradient that the trace left behind is a new fact. A function that clears it first does
        # not read it, so the same trace serves, unless the gradients were reachable tensors before
        # and the trace numbers its tensors with them.
        if any(gradient is not None for _, gradient in trace.grad_effects):
            survey = guards.survey(self._roots(args, kwargs))
            if [*map(id, survey.tensors)] == [*map(id, before.tensors)]:
                self._traces[
                    (mode.gradients, mode.autocast, trace.precision, *survey.guard)] = trace

    def _warn(self, facts: guards.Survey) -> None:
        place = _first_difference(self._last_facts, facts) if self._last_facts else None
        warnings.warn(
            f"kiln.jit has traced {self._name} for {len(self._traces)} kinds of call; the last one "
            f"differs in {(place or 'an argument').strip()}. Pass values that change often as "
            "tensors",
            RuntimeWarning, stacklevel=4)


def _first_difference(before: guards.Survey, after: guards.Survey) -> Optional[str]:
    assert before.paths is not None and after.paths is not None
    for i, (old, new) in enumerate(zip(before.guard, after.guard)):
        if old != new:
            return after.paths[i]
    if len(before.guard) != len(after.guard):
        longer = before if len(before.guard) > len(after.guard) else after
        paths = longer.paths or []
        return paths[min(len(before.guard), len(after.guard))]
    for old, new, path in zip(before.tensors, after.tensors, after.tensor_paths):
        if old is not new:
            return path
    return None


@overload
def jit(function: Callable[..., Any], *, update: str = "fixed",
        beam: Optional[int] = None) -> Jit: ...


@overload
def jit(function: None = None, *, update: str = "fixed",
        beam: Optional[int] = None) -> Callable[[Callable[..., Any]], Jit]: ...


def jit(function: Optional[Callable[..., Any]] = None, *, update: str = "fixed",
        beam: Optional[int] = None) -> Any:
    """Makes a function run as one program on the device. Also a decorator.

    The first call traces the function: it runs on tensors without values, and the graph is sent. A
    later call of the same kind is one message. The program runs where its tensors are: on the
    session's device, on another one, or on all devices of a mesh. The kind of a call consists of:
    shapes and dtypes of the tensors in (nested) arguments, and their placements (see kiln.shard);
    the values of all other arguments; the precision set by `kiln.set_float32_matmul_precision`;
    whether gradients are recorded, and `kiln.autocast`; and the Python values that the function
    reaches through its closure, globals and attributes, which are examined before each call.
    Tensors reached that way are inputs, read anew at each call; so a weight may be replaced, and a
    learning rate may change. `assign` (and so an optimizer) inside changes the tensor on the device
    in the same message. Results are always new tensors. No gradient flows out of a call: backward()
    belongs inside, and asking for a gradient through a result is an error.

    These raise TraceError instead of giving outdated results: reading a value inside; changing
    Python state inside (a counter, a list); NumPy arrays used inside; Python's or NumPy's random
    numbers inside; a tensor that is out of reach (held by an object without attributes). Before the
    second call of a kind the function is traced once more; an error says what differs and where, if
    it has read something that cannot be watched: a generator of random numbers, an iterator, a
    clock, a file, a tensor of another library. Not detected: changes of such things after the
    second call; attributes found by name at run time in modules (getattr on a module, globals());
    changes inside a large NumPy array.

    A program keeps the kernels that it was first compiled with, so that its results have the same
    bits in each call, also after the daemon was restarted. With `update="live"`, later calls use
    faster kernels as soon as a search has found some (`kiln.tune`, or the daemon's own while it is
    idle); they may round differently.

    >>> @kiln.jit
    ... def scaled(x, factor):
    ...     return x * factor
    >>> scaled(kiln.ones(2), 3).tolist(), scaled(kiln.ones(2) + 1, 3).tolist(), scaled.traces
    ([3.0, 3.0], [6.0, 6.0], 1)

    With `beam=4`, or `KILN_BEAM=4` in the environment for functions without `beam`, the daemon
    searches for faster kernels of each program when it is first compiled, as `kiln.tune` does with
    this width; 0: it does not. The first call waits for that, at most about a minute, with progress
    on stderr after two seconds, and already runs with what was found. Other processes and later
    ones find it stored and do not wait, except for kernels that there was no time for. If the
    daemon does not search, a warning says why.

    >>> @kiln.jit(beam=0)
    ... def tripled(x):
    ...     return 3 * x
    >>> tripled(kiln.ones(2)).tolist()
    [3.0, 3.0]
    """
    if function is None:
        return functools.partial(jit, update=update, beam=beam)
    return Jit(function, update, beam)
