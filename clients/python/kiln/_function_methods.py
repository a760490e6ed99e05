"""Functions of `kiln` that are methods in PyTorch, too, such as x.trace() for kiln.trace(x)."""

import importlib
from typing import Any, Callable

from kiln._tensor.base import TensorBase


def _of(module: str, name: str) -> Callable[..., Any]:
    """The method that calls a function with its tensor first. Modules that import Tensor wait."""

    def method(self: TensorBase, *args: Any, **kwargs: Any) -> Any:
        function = getattr(importlib.import_module(f"kiln.{module}"), name)
        return function(self._tensor, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"As kiln.{module}.{name}() of this tensor."
    return method


class FunctionMethods(TensorBase):
    """Arguments and errors are the functions'."""

    __slots__ = ()

    bincount = _of("_array_api.samples", "bincount")
    cholesky = _of("linalg", "cholesky")
    corrcoef = _of("_array_api.samples", "corrcoef")
    cov = _of("_array_api.samples", "cov")
    cross = _of("_array_api.linear_algebra", "cross")
    det = _of("linalg", "det")
    diag = _of("_array_api.linear_algebra", "diag")
    diag_embed = _of("_array_api.linear_algebra", "diag_embed")
    diff = _of("_array_api.utility", "diff")
    inner = _of("_array_api.linear_algebra", "inner")
    inverse = _of("linalg", "inv")
    kron = _of("_array_api.linear_algebra", "kron")
    kthvalue = _of("_array_api.sorting", "kthvalue")
    logaddexp2 = _of("_array_api.elementwise", "logaddexp2")
    matrix_power = _of("linalg", "matrix_power")
    multinomial = _of("random", "multinomial")
    mv = _of("_array_api.linear_algebra", "matmul")
    nan_to_num = _of("_array_api.elementwise", "nan_to_num")
    nanmean = _of("_array_api.nan_statistics", "nanmean")
    nansum = _of("_array_api.nan_statistics", "nansum")
    outer = _of("_array_api.linear_algebra", "outer")
    qr = _of("linalg", "qr")
    quantile = _of("_array_api.sorting", "quantile")
    slogdet = _of("linalg", "slogdet")
    trace = _of("_array_api.linear_algebra", "trace")
    vdot = _of("_array_api.linear_algebra", "vdot")
