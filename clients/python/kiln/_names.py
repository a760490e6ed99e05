"""PyTorch's further names for methods, and methods that are short for others."""

from typing import TYPE_CHECKING, Any, Sequence, Tuple

from kiln import _dtypes
from kiln._arithmetic import Arithmetic
from kiln._movement import Movement, sizes
from kiln._places import Places
from kiln._reductions import Axes, Reductions

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Names(Arithmetic, Places, Reductions):
    """All of it in terms of other methods."""

    __slots__ = ()

    absolute = Arithmetic.abs
    negative = Arithmetic.neg
    true_divide = Arithmetic.div
    less = Arithmetic.lt
    less_equal = Arithmetic.le
    greater = Arithmetic.gt
    greater_equal = Arithmetic.ge
    not_equal = Arithmetic.ne
    fix = Arithmetic.trunc
    swapaxes = Movement.transpose
    swapdims = Movement.transpose
    nelement = Movement.numel
    ndimension = Movement.dim

    # Dtypes and devices.

    def astype(self, dtype: Any) -> "Tensor":
        """The same values in another dtype, as cast."""
        return self.cast(dtype)

    def to(self, target: Any, *, copy: bool = False) -> "Tensor":
        """In another dtype, a dtype, a tensor's dtype, or on the device that has this name."""
        if isinstance(target, str) and target not in _dtypes.BY_NAME:
            return self._tensor.to_device(target)
        wanted = getattr(target, "dtype", target)
        result = self.cast(wanted)
        return result.__copy__() if copy and result is self else result

    def cpu(self) -> "Tensor":
        """The tensor itself: its values come to this process's memory by numpy() alone."""
        return self._tensor

    def byte(self) -> "Tensor":
        """As uint8."""
        return self.cast(_dtypes.uint8)

    def char(self) -> "Tensor":
        """As int8."""
        return self.cast(_dtypes.int8)

    def short(self) -> "Tensor":
        """As int16."""
        return self.cast(_dtypes.int16)

    def is_complex(self) -> bool:
        """False: there are no complex dtypes."""
        return False

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return self.dtype.is_signed or self.dtype.is_float

    @property
    def data(self) -> "Tensor":
        """The same value; no gradient flows through it."""
        return self._tensor.detach()

    # Tensors of the same dtype.

    def new_zeros(self, *shape: Any) -> "Tensor":
        """Zeros in this tensor's dtype."""
        from kiln.creation import zeros

        return zeros(sizes(shape), dtype=self.dtype)

    def new_ones(self, *shape: Any) -> "Tensor":
        """Ones in this tensor's dtype."""
        from kiln.creation import ones

        return ones(sizes(shape), dtype=self.dtype)

    def new_full(self, shape: Sequence[int], value: Any) -> "Tensor":
        """One number everywhere, in this tensor's dtype."""
        from kiln.creation import full

        return full(tuple(shape), value, self.dtype)

    def new_tensor(self, data: Any) -> "Tensor":
        """A tensor of data in this tensor's dtype."""
        from kiln.tensor import Tensor

        return Tensor(data, self.dtype)

    # Elementwise.

    def logical_xor(self, other: Any) -> "Tensor":
        """Whether one of the two is 0 and the other is not."""
        from kiln._operands import tensor_of

        return self.bool()._op("cmpne", tensor_of(other).bool())

    def bitwise_and(self, other: Any) -> "Tensor":
        """Bits that are set in both."""
        return self._op("and", other)

    def bitwise_or(self, other: Any) -> "Tensor":
        """Bits that are set in either."""
        return self._op("or", other)

    def bitwise_xor(self, other: Any) -> "Tensor":
        """Bits that are set in one of the two."""
        return self._op("xor", other)

    def bitwise_not(self) -> "Tensor":
        """Every bit inverted."""
        return self._op("not")

    def bitwise_left_shift(self, other: Any) -> "Tensor":
        """Bits moved up."""
        return self._op("shl", other)

    def bitwise_right_shift(self, other: Any) -> "Tensor":
        """Bits moved down, the sign kept."""
        return self._op("shr", other)

    def positive(self) -> "Tensor":
        """The tensor itself."""
        return self._tensor

    def frac(self) -> "Tensor":
        """The fraction, with the number's sign."""
        return self.sub(self.trunc())

    def clamp_min(self, min: Any) -> "Tensor":
        """Held at or above `min`."""
        return self.clamp(min=min)

    def clamp_max(self, max: Any) -> "Tensor":
        """Held at or below `max`."""
        return self.clamp(max=max)

    def addcmul(self, a: "Tensor", b: "Tensor", value: Any = 1) -> "Tensor":
        """Self + value * a * b."""
        return self.add(a.mul(b), value)

    def addcdiv(self, a: "Tensor", b: "Tensor", value: Any = 1) -> "Tensor":
        """Self + value * a / b."""
        return self.add(a.div(b), value)

    def addmm(self, a: "Tensor", b: "Tensor", beta: Any = 1, alpha: Any = 1) -> "Tensor":
        """Beta * self + alpha * (a @ b)."""
        return (self._tensor if beta == 1 else self.mul(beta)).add(a.matmul(b), alpha)

    baddbmm = addmm

    # Whole tensors.

    def equal(self, other: "Tensor") -> bool:
        """Whether shapes and all elements are equal. Reads one value."""
        return self.shape == other.shape and bool(self.eq(other).all())

    def allclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                 equal_nan: bool = False) -> bool:
        """Whether all elements are near, as isclose has it. Reads one value."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all())

    def isclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                equal_nan: bool = False) -> "Tensor":
        """Where elements are near: |self - other| <= atol + rtol * |other|, or they are equal."""
        near = self.sub(other).abs().le(other.abs().mul(rtol).add(atol))
        near = near.logical_and(other.isfinite()).logical_or(self.eq(other))
        if equal_nan:
            near = near.logical_or(self.isnan().logical_and(other.isnan()))
        return near

    def is_same_size(self, other: "Tensor") -> bool:
        """Whether both have one shape."""
        return self.shape == other.shape

    def count_nonzero(self, dim: Axes = None) -> "Tensor":
        """How many elements are not 0, as int64."""
        return self.bool().sum(dim)

    def aminmax(self, dim: Axes = None, keepdim: bool = False) -> Tuple["Tensor", "Tensor"]:
        """The smallest and the largest element."""
        return self.min(dim, keepdim), self.max(dim, keepdim)

    def dist(self, other: "Tensor") -> "Tensor":
        """The Euclidean distance."""
        return self.sub(other).norm()
