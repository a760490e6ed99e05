"""Kiln's Python client: lazy tensors that a device daemon differentiates, compiles and runs.

    import kiln

    x = kiln.tensor([[1.0, 2.0], [3.0, 4.0]])
    print((x @ x.T).numpy())

Without a call to `kiln.connect` the local daemon is found by itself.
"""

from kiln import functional, nn, optim, random
from kiln._connection import Connection, connect, default_connection
from kiln._dtypes import (
    DType,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from kiln._dtypes import bool_ as bool
from kiln._errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    KilnError,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    TraceError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)  # fmt: skip
from kiln._jit import Jit, jit
from kiln._version import __version__
from kiln.autograd import enable_grad, grad, is_grad_enabled, no_grad, value_and_grad
from kiln.creation import (
    arange,
    cat,
    concat,
    eye,
    from_numpy,
    full,
    full_like,
    iota,
    linspace,
    ones,
    ones_like,
    stack,
    tensor,
    zeros,
    zeros_like,
)  # fmt: skip
from kiln.functional import *  # noqa: F403
from kiln.functional import __all__ as _functions
from kiln.random import (
    Generator,
    bernoulli,
    manual_seed,
    normal,
    rand,
    randint,
    randn,
    randperm,
    uniform,
)  # fmt: skip
from kiln.serialization import load, save
from kiln.tensor import Tensor, realize

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Cancelled",
    "Connection",
    "DType",
    "DataLoss",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Generator",
    "Internal",
    "InvalidArgument",
    "Jit",
    "KilnError",
    "NotFound",
    "OutOfRange",
    "PermissionDenied",
    "ResourceExhausted",
    "Tensor",
    "TraceError",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "__version__",
    "arange",
    "bernoulli",
    "bfloat16",
    "bool",
    "cat",
    "concat",
    "connect",
    "default_connection",
    "enable_grad",
    "eye",
    "float8_e4m3",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "full_like",
    "functional",
    "grad",
    "int8",
    "int16",
    "int32",
    "int64",
    "iota",
    "is_grad_enabled",
    "jit",
    "linspace",
    "load",
    "manual_seed",
    "nn",
    "no_grad",
    "normal",
    "ones",
    "ones_like",
    "optim",
    "rand",
    "randint",
    "randn",
    "random",
    "randperm",
    "realize",
    "save",
    "stack",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uniform",
    "value_and_grad",
    "zeros",
    "zeros_like",
]  # fmt: skip
__all__ += _functions
