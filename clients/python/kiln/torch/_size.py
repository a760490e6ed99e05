"""torch.Size: the shape of a tensor."""

from typing import Any, Tuple


def words(text: str) -> Tuple[str, ...]:
    """Returns the words of a table of names."""
    return tuple(text.split())


class Size(tuple):  # type: ignore[type-arg]
    """A shape: a tuple of ints that counts its elements.

    >>> torch.ones(2, 3).size().numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Returns the number of elements."""
        count = 1
        for size in self:
            count *= size
        return count

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> "Size":
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> "Size":
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: Any) -> "Size":
        return Size(tuple.__mul__(self, count))

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)
