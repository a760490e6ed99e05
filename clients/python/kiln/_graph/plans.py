"""Finds the programs of eager code again without writing its graph.

A loop makes much the same graph at each iteration. The graph's outline finds its plan, and the plan
the program. At first numbers and sizes are constants, which give the better kernels. Numbers that
have changed become inputs of one more program, and sizes become its variables.
"""

import threading
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Sequence, Tuple

from kiln._basics.bindings import Bindings
from kiln._basics.dtypes import DType
from kiln._graph import build, compiles, places, stages, telling
from kiln._graph.lifting import Lifting, Numbers, Vectors
from kiln._graph.node import Node
from kiln._graph.outline import Outline
from kiln._graph.sizes import SIZE_MIN, Form, Guess, form_of
from kiln._placement.mesh import Mesh
from kiln._placement.placement import ProgramHome

_KEPT = 512  # in each generation of a table
_LAYOUTS_KEPT = 16  # programs of one graph, one for each placement of its inputs on a mesh
# The number of times that a plan guesses which numbers or sizes change.
_GUESSES = 5


class _Graph:
    """A graph and its programs."""

    def __init__(self, outline: Outline, roots: Sequence[Node], home: ProgramHome,
                 lifted: Any) -> None:
        built = build.build(roots, lifted=lifted)
        self.home = stages.home_of(built) or home
        self._graph = built.graph
        # The source of each input: a place among the outline's nodes, or the dtype of a vector.
        found: Dict[Node, Any] = {node: place for place, node in enumerate(outline.nodes)}
        found.update({stand_in: dtype for dtype, stand_in in lifted.vectors.items()})
        self._inputs = [found[node] for node in built.inputs]
        # With places in place of nodes: another outline has its own nodes there.
        self._telling = built.telling._replace(checks=[
            told._replace(node=found[told.node]) for told in built.telling.checks])
        self._programs: Dict[Any, Any] = {}
        self._is_accepted = False

    def inputs(self, outline: Outline, vectors: Dict[DType, Node]) -> List[Node]:
        """Returns the nodes of its inputs."""
        nodes = outline.nodes
        return [vectors[place] if isinstance(place, DType) else nodes[place]
                for place in self._inputs]

    def rules(self, outline: Outline) -> telling.Rules:
        """Returns how its run for an outline is judged."""
        if not self._telling.checks:
            return telling.NO_RULES
        return telling.rules(self._telling._replace(checks=[
            told._replace(node=outline.nodes[told.node]) for told in self._telling.checks]))

    def is_accepted(self, connection: Any) -> bool:
        """Returns whether the daemon accepts the graph; asks until it has accepted it once."""
        if not self._is_accepted:
            self._is_accepted = connection.accepts(self.program(connection, (), ()))
        return self._is_accepted

    def program(self, connection: Any, buffers: Sequence[Any], lie: Sequence[Any]) -> Any:
        """Returns the program for the placements of these inputs, and of results by `lie`."""
        given = places.as_given(buffers, self.home)
        program = self._programs.get(given)
        # A failed program is defined again: the reason, such as a lack of memory, may be gone.
        if program is not None and program.error is None:
            compiles.note_known()
        else:
            compiles.note_new()
            graph = places.with_sharding(
                self._graph, self.home, [buffer.placement for buffer in buffers], lie)
            program = connection.define(graph, devices=places.devices_of(self.home))
            if len(self._programs) >= _LAYOUTS_KEPT:
                self._programs.clear()
            self._programs[given] = program
        return program


class _Plan:
    """The graph of one outline or, with a guess of its sizes, of one form."""

    def __init__(self, samples: Sequence[Numbers] = (), guess: Optional[Guess] = None) -> None:
        """`samples` are numbers seen before."""
        self._samples = list(samples)
        self.guess = guess
        self._lifting: Optional[Lifting] = None
        self._graph: Optional[_Graph] = None

    def graph(self, outline: Outline, roots: Sequence[Node], home: ProgramHome,
              form: Optional[Form]) -> _Graph:
        """Returns the graph that computes an outline with these numbers."""
        if self._graph is None or self._lifting is None or not self._lifting.fits(outline.numbers):
            # After this many guesses all numbers are inputs.
            all_of_them = len(self._samples) >= _GUESSES
            if not all_of_them:
                self._samples.append(outline.numbers)
            self._lifting = Lifting(outline.positions, self._samples, all_of_them)
            sizes = self.guess.written(form) if self.guess is not None and form else None
            self._graph = _Graph(
                outline, roots, home, self._lifting.written(outline.positions, sizes))
        return self._graph

    def inputs(self, outline: Outline) -> List[Tuple[DType, Numbers]]:
        """Returns the values of the inputs that are numbers."""
        assert self._lifting is not None
        return self._lifting.inputs(outline.numbers)


class Ready(NamedTuple):
    """Everything that a run needs."""

    graph: _Graph
    inputs: List[Node]
    bindings: Bindings


class _Form:
    """The plan of outlines that differ only in sizes."""

    def __init__(self, outline: Outline, form: Form) -> None:
        """Starts with the first of them, which has a program of its own."""
        self._sizes: List[Sequence[int]] = [form.sizes]
        self._numbers: List[Numbers] = [outline.numbers]
        self._guess: Optional[Guess] = None
        self._plan: Optional[_Plan] = None
        self._guesses_left = _GUESSES
        self._size_min = 0

    def plan(self, outline: Outline, form: Form) -> Optional[Tuple[_Plan, Bindings]]:
        """Returns the plan and the variables' values; None if the outline needs its own plan."""
        guess, plan = self._guess, self._plan
        fits = guess is not None and guess.fits(form.sizes)
        bindings = guess.bindings(form.sizes) if guess is not None and fits else None
        if bindings is None:
            if not fits and not self._guesses_left:
                return None
            self._guesses_left -= not fits
            self._sizes.append(form.sizes)
            self._numbers.append(outline.numbers)
            return self._guessed(outline, form)
        assert plan is not None
        return plan, bindings

    def _guessed(self, outline: Outline, form: Form) -> Tuple[_Plan, Bindings]:
        guess = self._guess = Guess(self._sizes, outline, form, self._size_min)
        bindings = guess.bindings(form.sizes)
        assert bindings is not None
        plan = self._plan = _Plan(self._numbers[-_GUESSES:-1], guess)
        return plan, bindings

    def narrowed(self, outline: Outline, form: Form,
                 accepts: Callable[[_Plan], bool]) -> Optional[Tuple[_Plan, Bindings]]:
        """Returns a plan with the least bounds that the daemon accepts, or None.

        It refuses bounds at which a window, say, is larger than what it moves over.
        """
        assert self._guess is not None
        refused = max(self._size_min, SIZE_MIN)
        self._size_min = self._guess.size_max(self._sizes)
        found = self._guessed(outline, form)
        if not accepts(found[0]):
            return None
        least = self._size_min
        while least - refused > 1:
            self._size_min = (refused + least) // 2
            narrower = self._guessed(outline, form)
            if accepts(narrower[0]):
                least, found = self._size_min, narrower
            else:
                refused = self._size_min
        self._size_min = least
        self._plan, self._guess = found[0], found[0].guess
        return found

    def refused(self) -> None:
        """Drops the guess: the daemon rejected the graph, so each outline gets its own plan."""
        self._guess = self._plan = None
        self._guesses_left = 0


class _Table:
    """The entries that were used last.

    There are two generations instead of an ordered dict, so that a look-up usually hashes its key
    once.
    """

    def __init__(self) -> None:
        self._young: Dict[Hashable, Any] = {}
        self._old: Dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """Returns an entry and marks it as used; None if there is none."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Hashable, entry: Any) -> Any:
        """Adds an entry; drops the old generation's unused ones when the young one is full."""
        if len(self._young) >= _KEPT:
            self._old, self._young = self._young, {}
        self._young[key] = entry
        return entry


class Plans:
    """The plans of one connection. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans = _Table()  # by outline
        self._forms = _Table()
        self._vectors = Vectors()

    def ready(self, connection: Any, outline: Outline, roots: Sequence[Node],
              home: ProgramHome) -> Ready:
        """Returns what a run for an outline needs."""
        with self._lock:
            key = outline.key, home
            plan = self._plans.get(key)
            if plan is None and _is_on_one_device(home, outline):
                found = self._by_form(connection, outline, roots, home)
                if found is not None:
                    return found
            if plan is None:
                plan = self._plans.put(key, _Plan())
            return self._ready(plan, plan.graph(outline, roots, home, None), outline, {})

    def _ready(self, plan: _Plan, graph: _Graph, outline: Outline, bindings: Bindings) -> Ready:
        vectors = {dtype: self._vectors.get(dtype, numbers)
                   for dtype, numbers in plan.inputs(outline)}
        return Ready(graph, graph.inputs(outline, vectors), bindings)

    def _by_form(self, connection: Any, outline: Outline, roots: Sequence[Node],
                 home: ProgramHome) -> Optional[Ready]:
        form = form_of(outline, roots)
        known = self._forms.get((form.key, home))
        if known is None:
            if form.sizes:
                self._forms.put((form.key, home), _Form(outline, form))
            return None
        found = known.plan(outline, form)
        if found is None:
            return None

        def accepts(plan: _Plan) -> bool:
            return plan.graph(outline, roots, home, form).is_accepted(connection)

        if not accepts(found[0]):
            found = known.narrowed(outline, form, accepts)
            if found is None:
                known.refused()
                return None
        plan, bindings = found
        return self._ready(plan, plan.graph(outline, roots, home, form), outline, bindings)


def _is_on_one_device(home: ProgramHome, outline: Outline) -> bool:
    """Returns whether sizes may be variables. On a mesh, and in stages, they are numbers."""
    homes = {node.home for node in outline.nodes}
    return not isinstance(home, Mesh) and len(homes - {None}) < 2


def ready(connection: Any, outline: Outline, roots: Sequence[Node], home: ProgramHome) -> Ready:
    """Returns what a run for an outline on a connection needs."""
    if connection.plans is None:
        connection.plans = Plans()
    found: Ready = connection.plans.ready(connection, outline, roots, home)
    return found
