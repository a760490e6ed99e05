"""PyTorch's further names for methods, and methods that are short for others."""

from typing import TYPE_CHECKING, Any, Sequence, Tuple

from kiln._basics import dtypes
from kiln._tensor.arithmetic import Arithmetic
from kiln._tensor.movement import Movement, sizes
from kiln._tensor.ordering import Ordering
from kiln._tensor.places import Places
from kiln._tensor.reductions import Axes

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Names(Arithmetic, Ordering, Places):
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
        """The same values in another dtype, as cast.

        >>> kiln.tensor([1.0, 4.0]).astype(kiln.int8).tolist()
        [1, 4]
        """
        return self.cast(dtype)

    def to(self, target: Any, *, copy: bool = False) -> "Tensor":
        """In another dtype, a dtype, a tensor's dtype, or on the device that has this name.

        >>> kiln.tensor([1.0, 4.0]).to("float64").dtype
        kiln.float64
        """
        if isinstance(target, str) and target not in dtypes.BY_NAME:
            return self._tensor.to_device(target)
        wanted = getattr(target, "dtype", target)
        result = self.cast(wanted)
        return result.__copy__() if copy and result is self else result

    def cpu(self) -> "Tensor":
        """The tensor itself: its values come to this process's memory by numpy() alone.

        >>> kiln.tensor([1.0, 4.0]).cpu().tolist()
        [1.0, 4.0]
        """
        return self._tensor

    def byte(self) -> "Tensor":
        """As uint8.

        >>> kiln.tensor([[1, 2], [3, 4]]).byte().dtype
        kiln.uint8
        """
        return self.cast(dtypes.uint8)

    def char(self) -> "Tensor":
        """As int8.

        >>> kiln.tensor([[1, 2], [3, 4]]).char().dtype
        kiln.int8
        """
        return self.cast(dtypes.int8)

    def short(self) -> "Tensor":
        """As int16.

        >>> kiln.tensor([[1, 2], [3, 4]]).short().dtype
        kiln.int16
        """
        return self.cast(dtypes.int16)

    def is_complex(self) -> bool:
        """False: there are no complex dtypes.

        >>> kiln.tensor([1.0, 4.0]).is_complex()
        False
        """
        return False

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers.

        >>> kiln.tensor([[1, 2], [3, 4]]).is_signed()
        True
        """
        return self.dtype.is_signed or self.dtype.is_float

    @property
    def data(self) -> "Tensor":
        """The same value; no gradient flows through it.

        >>> kiln.tensor([1.0, 4.0]).data.requires_grad
        False
        """
        return self._tensor.detach()

    # Tensors of the same dtype.

    def new_zeros(self, *shape: Any) -> "Tensor":
        """Zeros in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_zeros(2).tolist()
        [0, 0]
        """
        from kiln._array_api.creation import zeros

        return zeros(sizes(shape), dtype=self.dtype)

    def new_ones(self, *shape: Any) -> "Tensor":
        """Ones in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_ones(2).tolist()
        [1, 1]
        """
        from kiln._array_api.creation import ones

        return ones(sizes(shape), dtype=self.dtype)

    def new_full(self, shape: Sequence[int], value: Any) -> "Tensor":
        """One number everywhere, in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_full((2,), 5).tolist()
        [5, 5]
        """
        from kiln._array_api.creation import full

        return full(tuple(shape), value, self.dtype)

    def new_tensor(self, data: Any) -> "Tensor":
        """A tensor of data in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_tensor([1, 2]).dtype
        kiln.int64
        """
        from kiln.tensor import Tensor

        return Tensor(data, self.dtype)

    # Elementwise.

    def logical_xor(self, other: Any) -> "Tensor":
        """Whether one of the two is 0 and the other is not.

        >>> kiln.tensor([True, False]).logical_xor(True).tolist()
        [False, True]
        """
        from kiln._array_api.operands import tensor_of

        return self.bool()._op("cmpne", tensor_of(other).bool())

    def bitwise_and(self, other: Any) -> "Tensor":
        """Bits that are set in both.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_and(2).tolist()
        [[0, 2], [2, 0]]
        """
        return self._op("and", other)

    def bitwise_or(self, other: Any) -> "Tensor":
        """Bits that are set in either.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_or(4).tolist()
        [[5, 6], [7, 4]]
        """
        return self._op("or", other)

    def bitwise_xor(self, other: Any) -> "Tensor":
        """Bits that are set in one of the two.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_xor(1).tolist()
        [[0, 3], [2, 5]]
        """
        return self._op("xor", other)

    def bitwise_not(self) -> "Tensor":
        """Every bit inverted.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_not().tolist()
        [[-2, -3], [-4, -5]]
        """
        return self._op("not")

    def bitwise_left_shift(self, other: Any) -> "Tensor":
        """Bits moved up.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_left_shift(1).tolist()
        [[2, 4], [6, 8]]
        """
        return self._op("shl", other)

    def bitwise_right_shift(self, other: Any) -> "Tensor":
        """Bits moved down, the sign kept.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_right_shift(1).tolist()
        [[0, 1], [1, 2]]
        """
        return self._op("shr", other)

    def positive(self) -> "Tensor":
        """The tensor itself.

        >>> kiln.tensor([[1, 2], [3, 4]]).positive().tolist()
        [[1, 2], [3, 4]]
        """
        return self._tensor

    def frac(self) -> "Tensor":
        """The fraction, with the number's sign.

        >>> kiln.tensor([1.5, -2.25]).frac().tolist()
        [0.5, -0.25]
        """
        return self.sub(self.trunc())

    def clamp_min(self, min: Any) -> "Tensor":
        """Held at or above `min`.

        >>> kiln.tensor([[1, 2], [3, 4]]).clamp_min(2).tolist()
        [[2, 2], [3, 4]]
        """
        return self._op("clamp_min", min)

    def clamp_max(self, max: Any) -> "Tensor":
        """Held at or below `max`.

        >>> kiln.tensor([[1, 2], [3, 4]]).clamp_max(2).tolist()
        [[1, 2], [2, 2]]
        """
        return self._op("clamp_max", max)

    def addcmul(self, a: "Tensor", b: "Tensor", value: Any = 1) -> "Tensor":
        """Self + value * a * b.

        >>> kiln.ones(2).addcmul(kiln.ones(2), kiln.ones(2) * 3, value=2).tolist()
        [7.0, 7.0]
        """
        return self.add(a.mul(b), value)

    def addcdiv(self, a: "Tensor", b: "Tensor", value: Any = 1) -> "Tensor":
        """Self + value * a / b.

        >>> kiln.ones(2).addcdiv(kiln.full((2,), 6.0), kiln.ones(2) * 3).tolist()
        [3.0, 3.0]
        """
        return self.add(a.div(b), value)

    def addmm(self, a: "Tensor", b: "Tensor", beta: Any = 1, alpha: Any = 1) -> "Tensor":
        """Beta * self + alpha * (a @ b).

        >>> kiln.zeros(2, 2).addmm(kiln.eye(2), kiln.ones(2, 2), alpha=3).tolist()
        [[3.0, 3.0], [3.0, 3.0]]
        """
        return (self._tensor if beta == 1 else self.mul(beta)).add(a.matmul(b), alpha)

    baddbmm = addmm

    # Whole tensors.

    def equal(self, other: "Tensor") -> bool:
        """Whether shapes and all elements are equal. Reads one value.

        >>> kiln.tensor([[1, 2], [3, 4]]).equal(kiln.tensor([[1, 2], [3, 4]]) + 0)
        True
        """
        return self.shape == other.shape and bool(self.eq(other).all())

    def allclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                 equal_nan: bool = False) -> bool:
        """Whether all elements are near, as isclose has it. Reads one value.

        >>> kiln.tensor([1.0, 4.0]).allclose(kiln.tensor([1.0, 4.0]) + 1e-9)
        True
        """
        return bool(self.isclose(other, rtol, atol, equal_nan).all())

    def isclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                equal_nan: bool = False) -> "Tensor":
        """Where elements are near: |self - other| <= atol + rtol * |other|, or they are equal.

        >>> kiln.tensor([1.0, 4.0]).isclose(kiln.tensor([1.0, 5.0])).tolist()
        [True, False]
        """
        near = self.sub(other).abs().le(other.abs().mul(rtol).add(atol))
        near = near.logical_and(other.isfinite()).logical_or(self.eq(other))
        if equal_nan:
            near = near.logical_or(self.isnan().logical_and(other.isnan()))
        return near

    def is_same_size(self, other: "Tensor") -> bool:
        """Whether both have one shape.

        >>> kiln.tensor([1.0, 4.0]).is_same_size(kiln.tensor([1.0, 4.0]))
        True
        """
        return self.shape == other.shape

    def count_nonzero(self, dim: Axes = None) -> "Tensor":
        """How many elements are not 0, as int64.

        >>> kiln.tensor([1, 0, 2]).count_nonzero().item()
        2
        """
        return self.bool().sum(dim)

    def aminmax(self, dim: Axes = None, keepdim: bool = False) -> Tuple["Tensor", "Tensor"]:
        """The smallest and the largest element.

        >>> [part.item() for part in kiln.tensor([[1, 2], [3, 4]]).aminmax()]
        [1, 4]
        """
        return self.amin(dim, keepdim), self.amax(dim, keepdim)

    def dist(self, other: "Tensor") -> "Tensor":
        """The Euclidean distance.

        >>> kiln.tensor([0.0, 0.0]).dist(kiln.tensor([3.0, 4.0])).item()
        5.0
        """
        return self.sub(other).norm()
