"""Kiln's Python client: lazy tensors that a device daemon differentiates, compiles and runs.

    import kiln

    x = kiln.tensor([[1.0, 2.0], [3.0, 4.0]])
    print(x @ x.T)

Without a call to `kiln.connect`, the local daemon is found automatically.

The functions of this namespace follow the Python array API standard 2024.12, without complex dtypes
and the fft extension. Methods of tensors have PyTorch's names, and so have functions that the
standard does not define.
"""

from math import e, inf, nan, pi

from kiln import (
    _attached_methods,  # noqa: F401, which gives Tensor its last methods
    autograd,
    functional,
    linalg,
    nn,
    ops,
    optim,
    random,
)
from kiln._basics.dtype_table import *  # noqa: F403
from kiln._basics.dtype_table import __all__ as _dtypes
from kiln._basics.dtype_table import bool_ as bool
from kiln._names import *  # noqa: F403
from kiln._names import __all__ as _names

__array_api_version__ = "2024.12"
newaxis = None

# PyTorch's names of dtypes. Not in __all__, so that `from kiln import *` keeps Python's own.
half, float, double = float16, float32, float64  # noqa: F405
short, int, long = int16, int32, int64  # noqa: F405

__all__ = [
    "__array_api_version__",
    "autograd",
    "bool",
    "e",
    "functional",
    "inf",
    "linalg",
    "nan",
    "newaxis",
    "nn",
    "ops",
    "optim",
    "pi",
    "random",
    *_dtypes,
    *_names,
]
