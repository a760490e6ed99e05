"""The default dtype, and the names of dtypes."""

from typing import Any, Dict

from kiln._basics import dtypes
from kiln._basics.conversion import integer_range
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument

_state: Dict[str, DType] = {"dtype": dtypes.float32}

# The dtypes that PyTorch names otherwise than Kiln.
NAMES: Dict[str, DType] = {
    "bool": dtypes.bool_, "half": dtypes.BY_NAME["float16"], "float": dtypes.float32,
    "double": dtypes.float64, "short": dtypes.BY_NAME["int16"], "int": dtypes.BY_NAME["int32"],
    "long": dtypes.int64, "float8_e4m3fn": dtypes.BY_NAME["float8_e4m3"],
}  # fmt: skip
# The classes of PyTorch's older names of dtypes, torch.FloatTensor and so on.
CLASSES: Dict[str, DType] = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64,
    "HalfTensor": dtypes.BY_NAME["float16"], "BFloat16Tensor": dtypes.BY_NAME["bfloat16"],
    "ByteTensor": dtypes.BY_NAME["uint8"], "CharTensor": dtypes.BY_NAME["int8"],
    "ShortTensor": dtypes.BY_NAME["int16"], "IntTensor": dtypes.BY_NAME["int32"],
    "LongTensor": dtypes.int64, "BoolTensor": dtypes.bool_,
}  # fmt: skip


def get_default_dtype() -> DType:
    """Returns the dtype of tensors made of Python floats.

    >>> torch.get_default_dtype()
    kiln.float32
    """
    return _state["dtype"]


def set_default_dtype(dtype: Any) -> None:
    """Sets the dtype of tensors made of Python floats.

    >>> torch.set_default_dtype(torch.float32)
    """
    wanted = as_dtype(dtype)
    if not wanted.is_float:
        raise InvalidArgument(f"a default dtype of {wanted.name}; it must be a float")
    _state["dtype"] = wanted


def set_default_tensor_type(kind: Any) -> None:
    """Sets the default dtype by the name or class of a tensor type, such as torch.DoubleTensor.

    >>> torch.set_default_tensor_type("torch.FloatTensor")
    """
    name = kind if isinstance(kind, str) else kind.__name__
    set_default_dtype(CLASSES[name.rpartition(".")[2]])


def as_dtype(value: Any) -> DType:
    """Returns the dtype that a dtype, a name, a Python type or a class of tensors stands for."""
    if isinstance(value, DType):
        return value
    text = value if isinstance(value, str) else ""
    if not text and hasattr(value, "_of_dtype"):
        of_class: DType = value._of_dtype
        return of_class
    if not text and type(value).__module__ == "torch":  # a dtype of PyTorch itself
        text = str(value)
    name = text.rpartition(".")[2]
    if name in CLASSES:
        return CLASSES[name]
    if name in NAMES:
        return NAMES[name]
    return dtypes.as_dtype(name or value)


def number_for(value: Any, dtype: DType) -> Any:
    """Returns a number as PyTorch writes it into a tensor: integers lose their fraction, and
    negative ones wrap in unsigned dtypes. Raises InvalidArgument for other integers that do not
    fit.
    """
    if dtype.is_float or isinstance(value, bool):
        return value
    number = int(value)
    if not dtype.is_integer:
        return bool(number)
    low, high = integer_range(dtype)
    if low > number >= -high and not dtype.is_signed:
        return number % (high + 1)
    if not low <= number <= high:
        raise InvalidArgument(
            f"{value!r} is not a value of {dtype.name}; it must be in [{low}, {high}]")
    return number
