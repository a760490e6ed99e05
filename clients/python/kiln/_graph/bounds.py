"""The bounds of the variables that sizes follow from: where shapes are legal, and not too large."""

from math import prod
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

# A program does the work of its variables' largest sizes. The bounds reach at least this far, and
# twice as far as the sizes seen, while all tensors together have at most this many elements.
_REACH_MIN = 128
_CHEAP_ELEMENTS = 1 << 22
# How far the bounds of a variable that is no size reach beyond the values seen. Bounds that span
# more than 1,024 values would be several programs.
_REACH_OF_AMOUNTS = 384
# If sizes are not linear this far around the last value, strides of up to that are tried.
_PIECE_MIN = 8
_STRIDE_MAX = 32

# Returns all shapes at some values of the variables, or None if one is not legal.
_ShapesAt = Callable[[List[int]], Optional[List[Tuple[int, ...]]]]


class Bounds:
    """The bounds of the variables of a guess."""

    def __init__(self, seen: Sequence[Sequence[int]], of_sizes: Set[int], shapes: _ShapesAt
                 ) -> None:
        """`seen` are the values of each variable, the last ones last.

        `of_sizes` are the numbers of those that sizes of inputs, slices and so on follow from.
        """
        known: Dict[Tuple[int, ...], Optional[List[Tuple[int, ...]]]] = {}

        def shapes_at(values: List[int]) -> Optional[List[Tuple[int, ...]]]:
            key = tuple(values)
            if key not in known:
                known[key] = shapes(values)
            return known[key]

        self._shapes = shapes_at
        self._last = [values[-1] for values in seen]
        self._slopes = [self._slope(number, values) for number, values in enumerate(seen)]
        self._slopes = [None if self._is_strided(number) else slope
                        for number, slope in enumerate(self._slopes)]
        lows, highs = [], []
        for number, values in enumerate(seen):
            is_size = number in of_sizes
            beyond = max(_REACH_OF_AMOUNTS, max(values) - min(values))
            lows.append(min(1, *values) if is_size else min(values) - beyond)
            highs.append(_reach(values) if is_size else _between_powers(max(values) + beyond))
        lows, highs = self._legal(lows), self._legal(highs)
        if self._elements(highs) > _CHEAP_ELEMENTS:
            # A size that grows is likely to go on growing; one that does not, such as an epoch's
            # last batch, is not.
            highs = self._legal([
                high if not self._costs(number, high) else
                values[-1] + abs(values[-1]) if values[-1] > max(values[:-1]) else max(values)
                for number, (high, values) in enumerate(zip(highs, seen))])
        self.ends = []
        for number, (low, high, values) in enumerate(zip(lows, highs, seen)):
            piece = [value for value in values if not self._is_other_piece(number, value)]
            self.ends.append((min(low, *piece, values[-1]), max(high, *piece, values[-1])))
        # Whether each variable may change while the others stay.
        self.are_free = all(
            any(self._sizes(number, value + step) is not None for step in (-1, 1))
            for number, value in enumerate(self._last))
        middle = [(min(values) + max(values)) // 2 for values in seen]
        self.are_continuous = shapes_at(middle) is not None and all(
            low <= min(values) and max(values) <= high and high - low >= 2
            for (low, high), values in zip(self.ends, seen))

    def _elements(self, values: List[int]) -> int:
        shapes = self._shapes(values)
        return 0 if shapes is None else sum(map(prod, shapes))

    def _costs(self, number: int, value: int) -> bool:
        """Returns whether a variable at this value, the others as seen last, makes more work."""
        return self._elements(_with(self._last, number, value)) > self._elements(self._last)

    def _is_strided(self, number: int) -> bool:
        """Returns whether sizes grow linearly only with steps of a variable.

        Windows that are some stride apart fit one more time only every so often. The daemon has one
        program for all of these sizes.
        """
        last = self._last[number]
        near = range(last - _PIECE_MIN, last + _PIECE_MIN + 1)
        if self._slopes[number] is not None and not any(
                self._is_other_piece(number, value) for value in near):
            return False
        for stride in range(2, _STRIDE_MAX + 1):
            sizes = [self._sizes(number, last + stride * i) for i in range(-4, 5)]
            rises = [_rise(a, b) for a, b in zip(sizes, sizes[1:])
                     if a is not None and b is not None]
            if len(rises) >= 3 and all(rise == rises[0] for rise in rises):
                return True
        return False

    def _slope(self, number: int, seen: Sequence[int]) -> Optional[List[int]]:
        """Returns how much each size grows when a variable grows by 1; None: not linearly.

        Some sizes are linear in pieces: the length of a diagonal grows until the diagonal passes
        the corner, and shrinks from there. This is the slope of the piece around the last value.
        """
        forward = 1 if len(seen) < 2 or seen[-1] >= seen[-2] else -1
        for first, second, third in ((-1, 0, 1), (0, forward, 2 * forward),
                                     (0, -forward, -2 * forward)):
            a, b, c = [self._sizes(number, seen[-1] + step) for step in (first, second, third)]
            if a is not None and b is not None and c is not None:
                slope = _rise(a, b)
                if slope == _rise(b, c):
                    return slope if second >= first else [-each for each in slope]
        return None

    def _sizes(self, number: int, value: int) -> Optional[List[int]]:
        shapes = self._shapes(_with(self._last, number, value))
        return None if shapes is None else [size for shape in shapes for size in shape]

    def _is_other_piece(self, number: int, value: int) -> bool:
        """Returns whether shapes are legal at this value, but other functions of the variable."""
        slopes, now, then = self._slopes[number], self._sizes(number, self._last[number]), (
            self._sizes(number, value))
        if slopes is None or now is None or then is None:
            return False
        steps = value - self._last[number]
        return any(size + slope * steps != other for size, slope, other in zip(now, slopes, then))

    def _legal(self, wanted: List[int]) -> List[int]:
        """Returns the values nearest to those wanted for which all shapes are legal."""
        together = self._shapes(wanted) is not None
        # One variable may only be legal there because another one grows too.
        return [value if together and self._sizes(number, value) is None else
                self._nearest(number, value) for number, value in enumerate(wanted)]

    def _nearest(self, number: int, wanted: int) -> int:
        """Returns the legal value of a variable nearest to the one wanted, the others as seen last.

        Assumes that there is one place where values become illegal, or where another piece begins.
        """
        legal, illegal = self._last[number], wanted
        if self._is_legal(number, wanted):
            return wanted
        while abs(illegal - legal) > 1:
            middle = (legal + illegal) // 2
            if self._is_legal(number, middle):
                legal = middle
            else:
                illegal = middle
        return legal

    def _is_legal(self, number: int, value: int) -> bool:
        return self._sizes(number, value) is not None and not self._is_other_piece(number, value)


def _rise(before: List[int], after: List[int]) -> List[int]:
    return [b - a for a, b in zip(before, after)]


def _with(values: List[int], number: int, value: int) -> List[int]:
    return [*values[:number], value, *values[number + 1 :]]


def _reach(sizes: Sequence[int]) -> int:
    return max(_REACH_MIN, 1 << (2 * max(sizes) - 1).bit_length())


def _between_powers(value: int) -> int:
    """Returns a value that is at least this one.

    Some expansions have another form at multiples of a size, often a power of two. The daemon
    builds graphs near the greatest value and its half, and neither is near such a multiple.
    """
    return value + (11 - value) % 32
