"""A trace: a function run once on placeholders, and everything needed to run its graph again."""

import hashlib
import sys
import types
import weakref
from random import getstate
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from kiln import variables
from kiln._basics.bindings import Bindings, merged, require
from kiln._basics.dtypes import uint32
from kiln._basics.errors import TraceError
from kiln._basics.source import Source, format_source
from kiln._graph import build, compiles, places, realize, stages, telling
from kiln._graph import node as _node
from kiln._graph.node import Node, make, mode
from kiln._placement import placement as placements
from kiln._placement.placement import Placement, ProgramHome
from kiln._trace import beam, guards
from kiln._trace.nested import pack, unpack
from kiln.random import Generator
from kiln.tensor import Tensor, wrap


class _Draws:
    """The draws from a generator within a trace."""

    __slots__ = ("count", "key")

    def __init__(self) -> None:
        self.key = _node.placeholder(uint32, (2,))
        self.count = 0

    def moved(self, count: int) -> Node:
        """Returns the key after `count` draws."""
        step = make("iota", (), (("shape", (2,)), ("axis", 0)), uint32)  # (0, 1)
        return make("add", (self.key, make("mul", (step, _node.scalar(count, uint32)))))


class _Constant(NamedTuple):
    """A tensor made of host data while tracing: the digest of its numbers, and the line."""

    numbers: bytes
    source: Optional[Source]


class Trace:
    """One trace: in progress while it is `mode.trace`, afterwards ready to run."""

    def __init__(self, name: str, precision: Any, live: bool = False) -> None:
        self.name = name
        self.live = live  # as `update` of kiln.jit
        self.precision = precision  # of its matrix products
        self.beam: Optional[int] = None  # see kiln.jit
        self.kept: List[Any] = []  # objects that the guard names by identity
        self.draws: Dict[Generator, _Draws] = {}
        self.graph: Any = None
        self.inputs: List[Tuple[str, Any]] = []  # how to find each input's value
        self.outputs: List[Tuple[Any, Any]] = []  # dtype and shape
        self.dialects: List[Any] = []  # of the outputs
        self.rules = telling.NO_RULES  # for its runs; their outputs follow the others
        self.tracked: List[bool] = []  # whether a gradient could flow to each output
        self.updated: List[int] = []  # updated tensors, by their number in the survey
        self.grad_effects: List[Tuple[int, Optional[Tensor]]] = []
        self.structure: Any = None
        self.constants: List[_Constant] = []
        self.repeated = False  # whether an equal second trace was made
        self.bindings: Bindings = {}  # values of variables that the function itself bound
        # The place where it runs, and each output's placement on a mesh, or the number of the input
        # it shares one with.
        self.home: ProgramHome = None
        self.lie: List[Union[Placement, int, None]] = []
        # By connection, then by the placements of inputs on a mesh.
        self.programs: weakref.WeakKeyDictionary[Any, Dict[Any, Any]] = (
            weakref.WeakKeyDictionary())
        self._created: Set[Node] = set()
        # The data of created nodes that are inputs; and nodes made of it again for the connection
        # of the last call.
        self._hosts: Dict[Node, Any] = {}
        self._remade: Dict[Node, Node] = {}
        self._cleared: Set[int] = set()

    # Called while tracing.

    def created(self, node: Node) -> None:
        """Records a tensor made of host data: a constant."""
        self._created.add(node)

    def random_key(self, generator: Generator) -> Tensor:
        """Returns the key of the next draw."""
        draws = self.draws.get(generator)
        if draws is None:
            draws = self.draws[generator] = _Draws()
        draws.count += 1
        return wrap(draws.moved(draws.count - 1) if draws.count > 1 else draws.key)

    def grad_set(self, tensor: Tensor) -> None:
        """Records that the function set a tensor's grad, whatever it was before."""
        self._cleared.add(id(tensor))

    # Making a trace.

    def record(self, function: Callable[..., Any], args: Any, kwargs: Any,
               survey: guards.Survey) -> None:
        """Runs the function on placeholders and builds its graph."""
        tensors = survey.tensors
        self.kept = survey.kept
        # The user's tensors hold placeholders only while the function runs, even if it raises.
        before = [(tensor._node, tensor._grad) for tensor in tensors]
        places = [_place(tensor) for tensor in tensors]
        randomness = _python_randomness()
        mode.trace = self
        try:
            for tensor, node in zip(tensors, places):
                tensor._node = node
            result = function(*args, **kwargs)
            roots: List[Node] = []
            self.structure = pack(result, roots)
        finally:
            after = [(tensor._node, tensor._grad) for tensor in tensors]
            for tensor, (node, gradient) in zip(tensors, before):
                tensor._node, tensor._grad = node, gradient
            mode.trace = None
        if randomness != _python_randomness():
            raise TraceError(
                f"{self.name} draws from Python's or NumPy's random numbers; later calls would "
                "repeat them. Use kiln.rand and its siblings, or pass the number as an argument")
        self._note_gradients(survey, before, after)
        self._build(survey, places, [node for node, _ in after], roots)

    def _note_gradients(self, survey: guards.Survey, before: Any, after: Any) -> None:
        for i, ((_, old), (_, new)) in enumerate(zip(before, after)):
            if new is old:
                continue
            if new is not None:
                if id(survey.tensors[i]) not in self._cleared:
                    raise TraceError(
                        f"{self.name} leaves a gradient in {survey.tensor_paths[i]}.grad that "
                        "would add up over calls; call zero_grad() in the function, before "
                        "backward() or after the gradients are used")
                guards.leftovers.add(new._node)
            self.grad_effects.append((i, new))

    def _build(self, survey: guards.Survey, places: List[Node], after: List[Node],
               roots: List[Node]) -> None:
        changed = [i for i, (old, new) in enumerate(zip(places, after)) if new is not old]
        updates = [(places[i], after[i]) for i in changed]
        updates += [(draws.key, draws.moved(draws.count)) for draws in self.draws.values()]
        self.updated = changed
        self.outputs = [(node.dtype, node.shape) for node in roots]
        self.dialects = [node.dialect for node in roots]
        self.tracked = [node.tracked for node in roots]
        if not roots and not updates:
            return
        built = build.build(roots, updates, [old for old, _ in updates], self.precision)
        self.graph = built.graph
        self.bindings = built.bindings
        self.rules = telling.rules(built.telling)
        number = {node: i for i, node in enumerate(places)}
        keys = {draws.key: generator for generator, draws in self.draws.items()}
        for node in built.inputs:
            if node in number:
                self.inputs.append(("tensor", number[node]))
            elif node in keys:
                self.inputs.append(("key", keys[node]))
            elif node in self._created:
                self.inputs.append(("constant", node))
                self._hosts[node] = node.host
                self.constants.append(_Constant(_digest(node), node.source))
            else:
                self._refuse(node)
        if placements.in_use:
            self._note_home(built, roots, updates)

    def _note_home(self, built: build.Built, roots: Sequence[Node],
                   updates: Sequence[Tuple[Node, Node]]) -> None:
        self.home = stages.home_of(built)
        self.graph = built.graph
        if self.home is None:
            self.home = places.home_of([*built.inputs, *roots, *[new for _, new in updates]])
        number = {node: i for i, node in enumerate(built.inputs)}
        # A result that is an input, or the new value of one, is placed like that input.
        same = {**number, **{new: number[old] for old, new in updates}}
        self.lie = [same[root] if root in same else places.where(root) for root in roots]
        self.lie += [None] * len(self.rules.outputs)

    def _refuse(self, node: Node) -> None:
        if node.buffer is None and node.host is None:
            raise TraceError(
                f"{self.name} uses a tensor that was made inside another traced function (a "
                "gradient that one left behind?) and exists only there; return it from there, or "
                "call zero_grad() first")
        made = f", made at {format_source(node.source)}" if node.source else ""
        raise TraceError(
            f"{self.name} uses a tensor of shape {node.shape}{made}, that kiln.jit cannot watch, "
            "because it is not reached through an argument, the closure, a global or an attribute. "
            "Pass "
            "it as an argument")

    # Running it.

    def run(self, survey: guards.Survey) -> Any:
        """Runs one call and returns its result."""
        tensors = survey.tensors
        if self.graph is None:
            results: List[Any] = []
        else:
            self._realize([tensors[i] for kind, i in self.inputs if kind == "tensor"])
            for i in self.updated:
                if not _is_exclusive(tensors[i]):
                    _give_own_buffer(tensors[i])
            try:
                results = self._send(survey)
            except BaseException:  # also an interrupt: the draws on the device are unknown then
                for generator in self.draws:
                    generator.device_draws = -1
                raise
        for i, gradient in self.grad_effects:
            tensors[i]._grad = gradient
        nodes = [_node.value(buffer) for buffer in results]
        for node, dialect in zip(nodes, self.dialects):
            node.dialect = dialect
        if mode.gradients:
            self._mark_cut(nodes, tensors)
        return unpack(self.structure, [wrap(node) for node in nodes])

    def _mark_cut(self, results: Sequence[Node], tensors: Sequence[Tensor]) -> None:
        """Marks results that a gradient cannot flow out of, so that asking for it is an error."""
        floats = [(node, tracked) for node, tracked in zip(results, self.tracked)
                  if node.dtype.is_float]
        given = not all(tracked for _, tracked in floats) and any(
            tensor._node.cut is not None or (tensor._node.tracked and not tensor._requires_grad)
            for tensor in tensors)
        cut = _node.TracedCall(next(_node.calls), self.name)
        for node, tracked in floats:
            if tracked or given:
                node.cut = cut

    def _realize(self, tensors: Sequence[Tensor]) -> None:
        lazy = [tensor for tensor in tensors if tensor._node.op != "input"
                and tensor._node.buffer is None]
        if lazy:
            realize.realize(lazy)

    def _send(self, survey: guards.Survey) -> List[Any]:
        where = self._connection(survey.tensors) if self.draws or self.constants else None
        nodes = [self._input(kind, what, survey.tensors, where) for kind, what in self.inputs]
        bindings, outputs = self._bound(survey, nodes)
        # The first inputs are those that are updated; see _build.
        changing = nodes[: len(self.updated) + len(self.draws)]
        connection, buffers = realize.bind(nodes, self.home, set(changing))
        program, lie = self._program(connection, buffers)
        results: List[Any] = connection.run(
            program, buffers, [*outputs, *self.rules.outputs], bool(self.updated or self.draws),
            bindings, bool(self.updated), len(self.rules.outputs))
        if placements.in_use:
            realize.lies(results, lie, self.home)
        for buffer in buffers[: len(changing)]:
            buffer.has_changed()
        for generator, draws in self.draws.items():
            generator.draws += draws.count
            generator.device_draws = generator.draws
        telling.expect(connection, self.rules, results)
        return results[:len(outputs)]

    def _program(self, connection: Any, buffers: Sequence[Any]) -> Any:
        """Returns the program for these inputs' placements, and the placements of its outputs."""
        programs = self.programs.setdefault(connection, {})
        given = places.as_given(buffers, self.home) if placements.in_use else None
        found = programs.get(given)
        if found is not None:
            compiles.note_known()
        else:
            lie = [buffers[how].placement if isinstance(how, int) else how for how in self.lie]
            graph = places.with_sharding(
                self.graph, self.home, [buffer.placement for buffer in buffers], lie)

            def define() -> Any:
                return connection.define(
                    graph, self.name, places.devices_of(self.home), self.live)

            program, width = define(), beam.width_of(self.beam)
            if width > 0:
                program = beam.tuned(program, define, width)
            found = programs[given] = program, lie
        return found

    def _bound(self, survey: guards.Survey, nodes: Sequence[Node]) -> Tuple[Bindings, List[Any]]:
        """Returns the values of this call's variables, and the outputs' shapes with them."""
        if not self.graph.variables:
            return {}, self.outputs
        bindings = survey.bindings
        for node in nodes:
            if node.bindings:
                bindings = merged(bindings, node.bindings)
        # Values of this call take precedence over those that the function itself has bound.
        bindings = {**self.bindings, **bindings}
        require(self.graph.variables, bindings)
        names = {variable.name for variable in self.graph.variables}
        used = {symbol: number for symbol, number in bindings.items() if symbol.name in names}
        return used, [(dtype, variables.shape_at(shape, used)) for dtype, shape in self.outputs]

    def _connection(self, tensors: Sequence[Tensor]) -> Any:
        return realize.connection_of(
            tensors[what]._node for kind, what in self.inputs if kind == "tensor")

    def _input(self, kind: str, what: Any, tensors: Sequence[Tensor], connection: Any) -> Any:
        if kind == "tensor":
            return tensors[what]._node
        if kind == "constant":
            return what if _may_be_at(what, connection) else self._constant_at(what, connection)
        # The generator has moved since: by a new seed, or by draws outside of traced functions; or
        # the last draws were on another connection.
        if (what.device_key is None or what.device_draws != what.draws
                or not _may_be_at(what.device_key._node, connection)):
            what.device_key = Tensor(
                np.array([what.word(), what.draws % (1 << 32)], np.uint32))
        return what.device_key._node

    def _constant_at(self, constant: Node, connection: Any) -> Node:
        node = self._remade.get(constant)
        if node is None or not _may_be_at(node, connection):
            self._remade[constant] = node = _node.placeholder(constant.dtype, constant.shape)
            node.host = self._hosts[constant]
        return node


def _may_be_at(node: Node, connection: Any) -> bool:
    return node.buffer is None or node.buffer.connection is connection


def _place(tensor: Tensor) -> Node:
    node = _node.placeholder(tensor.dtype, tensor.shape)
    node.bindings, node.dialect = tensor._node.bindings, tensor._node.dialect
    if placements.in_use:
        node.home, node.placement = tensor._node.home, places.where(tensor._node)
    if tensor._requires_grad:
        node.leaf = weakref.ref(tensor)
        node.tracked = True
    return node


def _digest(node: Node) -> bytes:
    assert node.host is not None
    return hashlib.sha256(node.host.tobytes()).digest()


def _python_randomness() -> Any:
    state: Any = np.random.get_state()
    return getstate(), state[1].tobytes(), state[2:]


# A buffer may be updated in place only if nothing else reads it: a tensor that was assigned from it
# or detached, or a lazy expression that was built from it before.


def _references(tensor: Tensor) -> Tuple[int, int]:
    node = tensor._node
    return sys.getrefcount(node), sys.getrefcount(node.buffer)


def _exclusive_references() -> Tuple[int, int]:
    tensor = wrap(Node("input", uint32, (), (), (), None))
    tensor._node.buffer = types.SimpleNamespace()  # type: ignore[assignment]
    return _references(tensor)


_EXCLUSIVE = _exclusive_references()


def _is_exclusive(tensor: Tensor) -> bool:
    if tensor._node.buffer is None:
        return tensor._node.host is None or _references(tensor)[0] <= _EXCLUSIVE[0]
    references = _references(tensor)
    return references[0] <= _EXCLUSIVE[0] and references[1] <= _EXCLUSIVE[1]


def _give_own_buffer(tensor: Tensor) -> None:
    """Gives the tensor a copy, and leaves the buffer to its other readers."""
    copy = wrap(make("contiguous", (tensor._node,)))
    realize.realize([copy])
    assert copy._node.buffer is not None
    tensor._node = _node.value(copy._node.buffer, tensor._node)
    tensor._mark_leaf()
