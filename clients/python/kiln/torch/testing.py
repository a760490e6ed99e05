"""torch.testing: assertions about tensors."""

from typing import Any, Optional

import numpy as np

from kiln.torch._tensor import convert


def assert_close(actual: Any, expected: Any, *, rtol: Optional[float] = None,
                 atol: Optional[float] = None, equal_nan: bool = False,
                 check_device: bool = True, check_dtype: bool = True, msg: Any = None,
                 **_: Any) -> None:
    """Raises AssertionError unless the tensors are close, by the precision of their dtype."""
    one, other = convert(actual), convert(expected)
    if check_dtype and one.dtype is not other.dtype:
        raise AssertionError(f"The values for attribute 'dtype' do not match: {one.dtype} != "
                             f"{other.dtype}.")
    if one.shape != other.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {one.shape} != "
                             f"{other.shape}.")
    usual = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
             "float64": (1e-7, 1e-7)}.get(one.dtype.name, (0.0, 0.0))
    np.testing.assert_allclose(
        one.numpy(), other.numpy(), usual[0] if rtol is None else rtol,
        usual[1] if atol is None else atol, equal_nan, msg if isinstance(msg, str) else "")


__all__ = ["assert_close"]
