"""Makes numbers of a graph inputs of its program."""

from collections import OrderedDict
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kiln._basics import conversion
from kiln._basics.dtypes import DType, int64
from kiln._graph import node as _node
from kiln._graph.build import GraphWriter
from kiln._graph.node import Attributes, Node
from kiln._graph.outline import Position, dtype_of, is_whole
from kiln._graph.sizes import Sizes

# The numbers of an outline, see outline.py.
Numbers = Tuple[Any, ...]


class Slot(NamedTuple):
    """An element of the vector that holds the numbers of one dtype."""

    dtype: DType
    element: int


class Lifting:
    """Decides which numbers of an outline are inputs.

    Equal numbers, such as one learning rate at many places, are still separate inputs: they may
    differ later.
    """

    def __init__(self, positions: Sequence[Position], samples: Sequence[Numbers],
                 all_of_them: bool = False) -> None:
        """Makes a number an input if it differs among the samples, or with `all_of_them`."""
        self._fixed: List[Tuple[int, Any]] = []
        self._vectors: Dict[DType, List[int]] = {}  # the places of the numbers, by dtype
        self._slots: Dict[int, Slot] = {}
        for place, position in enumerate(positions):
            values = [sample[place] for sample in samples]
            differ = values.count(values[0]) != len(values)
            if not differ and not (all_of_them and not is_whole(position)):
                self._fixed.append((place, values[0]))
                continue
            dtype = dtype_of(position)
            elements = self._vectors.setdefault(dtype, [])
            self._slots[place] = Slot(dtype, len(elements))
            elements.append(place)

    def fits(self, numbers: Numbers) -> bool:
        """Returns whether the program handles these numbers: all constants are equal."""
        return all(numbers[place] == value for place, value in self._fixed)

    def inputs(self, numbers: Numbers) -> List[Tuple[DType, Numbers]]:
        """Returns the values of the vectors."""
        return [(dtype, tuple([numbers[place] for place in elements]))
                for dtype, elements in self._vectors.items()]

    def written(self, positions: Sequence[Position], sizes: Optional[Sizes]) -> "LiftedNumbers":
        """Returns the writer for the graph's message; `sizes` are the variable ones, if any."""
        return LiftedNumbers(
            {positions[place]: slot for place, slot in self._slots.items()},
            {dtype: len(elements) for dtype, elements in self._vectors.items()}, sizes)


_VECTORS_KEPT = 256


class Vectors:
    """Caches the values of vectors used recently: many loops repeat theirs."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[Any, Node] = OrderedDict()

    def get(self, dtype: DType, numbers: Numbers) -> Node:
        """Returns the value of a vector, rounded as the daemon rounds constants."""
        node = self._nodes.get((dtype, numbers))
        # A vector whose upload failed is made again.
        if node is None or (node.buffer is not None and node.buffer.error is not None):
            parse = float if dtype.is_float else int
            values = [parse(number) if isinstance(number, str) else number for number in numbers]
            node = Node("input", dtype, (len(values),), (), (), None)
            node.host = conversion.to_array(values, dtype)[0]
            self._nodes[dtype, numbers] = node
            if len(self._nodes) > _VECTORS_KEPT:
                self._nodes.popitem(last=False)
        return node


class LiftedNumbers:
    """Writes inputs in place of constants while `build` makes a graph's message."""

    def __init__(self, slots: Dict[Position, Slot], lengths: Dict[DType, int],
                 sizes: Optional[Sizes]) -> None:
        self._slots = slots
        self._sizes = sizes
        # Placeholders of the vectors among the inputs.
        self.vectors = {
            dtype: _node.placeholder(dtype, (length,)) for dtype, length in lengths.items()}
        self._inputs: Dict[DType, int] = {}
        self._written: Dict[Any, int] = {}

    def declare(self, writer: GraphWriter) -> None:
        """Adds the vectors to the graph's inputs, and the variable sizes to its variables."""
        for dtype, vector in self.vectors.items():
            self._inputs[dtype] = writer.add_input(vector, vector.shape)
        if self._sizes is not None:
            self._sizes.declare(writer.graph)

    def shape(self, node: Node) -> Sequence[Any]:
        """Returns an input's shape."""
        return node.shape if self._sizes is None else self._sizes.shape(node)

    def attributes(self, node: Node) -> Attributes:
        """Returns a node's attributes."""
        return node.attributes if self._sizes is None else self._sizes.attributes(node)

    def has(self, node: Node, place: int) -> bool:
        """Returns whether the number at a place is an input."""
        return (node, place) in self._slots

    def operand(self, writer: GraphWriter, node: Node, place: int) -> int:
        """Returns the graph's number of a Python number that is an input."""
        return self._element(writer, self._slots[Position(node, place)], ())

    def moved(self, writer: GraphWriter, node: Node, operand: int) -> Optional[int]:
        """Returns the graph's number of a slice or padding whose begins are inputs, or None."""
        axes = [axis for axis in range(len(node.shape)) if (node, axis) in self._slots]
        if not axes:
            return None
        is_pad = node.op == "pad"
        ((name, given),) = self.attributes(node)
        shape = node.shape if self._sizes is None else self._sizes.result(node)
        pairs = list(given)
        for axis in axes:
            slot = self._slots[Position(node, axis)]
            # A gather reads zero out of range, which makes the padding.
            places = self._places(writer, shape[axis], slot, "sub" if is_pad else "add")
            operand = writer.add("gather", node.dtype, [operand, places], axis=axis)
            pairs[2 * axis : 2 * axis + 2] = (0, 0) if is_pad else (0, shape[axis])
        return writer.add(node.op, node.dtype, [operand], **{name: tuple(pairs)})

    def _places(self, writer: GraphWriter, count: Any, slot: Slot, op: str) -> int:
        begin = self._element(writer, slot, (1,))
        along = writer.add("iota", int64, [], shape=(count,), axis=0)
        return writer.add(op, int64, [along, begin])

    def _element(self, writer: GraphWriter, slot: Slot, shape: Tuple[int, ...]) -> int:
        known = self._written.get((slot, shape))
        if known is None:
            element = self._inputs[slot.dtype]
            if self.vectors[slot.dtype].shape != (1,):
                bounds = (slot.element, slot.element + 1)
                element = writer.add("shrink", slot.dtype, [element], bounds=bounds)
            if not shape:
                element = writer.add("reshape", slot.dtype, [element], shape=shape)
            known = self._written[slot, shape] = element
        return known
