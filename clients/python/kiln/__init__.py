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
from kiln._array_api.info import __array_namespace_info__
from kiln._basics.dtype import DType
from kiln._basics.dtype_table import *  # noqa: F403
from kiln._basics.dtype_table import __all__ as _dtypes
from kiln._basics.dtype_table import bool_ as bool
from kiln._basics.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    InvalidIndex,
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
from kiln._basics.version import __version__
from kiln._graph.matmul_precision import (
    get_float32_matmul_precision,
    set_float32_matmul_precision,
)
from kiln._session.connection import Connection, connect, default_connection, devices
from kiln._session.handles import Device
from kiln._trace.jit import Jit, jit
from kiln.amp import GradScaler, autocast
from kiln.autograd import enable_grad, grad, is_grad_enabled, no_grad, value_and_grad
from kiln.detached import attach
from kiln.functional import *  # noqa: F403
from kiln.functional import __all__ as _neural
from kiln.method_functions import *  # noqa: F403
from kiln.method_functions import __all__ as _methods
from kiln.random import (
    Generator,
    bernoulli,
    manual_seed,
    multinomial,
    normal,
    rand,
    randint,
    randn,
    randperm,
    uniform,
)  # fmt: skip
from kiln.serialization import load, save
from kiln.sharding import Mesh, shard
from kiln.tensor import Tensor, realize
from kiln.variables import Variable

# isort: split
# The array API, chapter by chapter. Its names take precedence over those imported before.
from kiln._array_api.creation import *  # noqa: F403
from kiln._array_api.creation import __all__ as _creation
from kiln._array_api.data_types import *  # noqa: F403
from kiln._array_api.data_types import __all__ as _data_types
from kiln._array_api.elementwise import *  # noqa: F403
from kiln._array_api.elementwise import __all__ as _elementwise
from kiln._array_api.linear_algebra import *  # noqa: F403
from kiln._array_api.linear_algebra import __all__ as _linear_algebra
from kiln._array_api.manipulation import *  # noqa: F403
from kiln._array_api.manipulation import __all__ as _manipulation
from kiln._array_api.nan_statistics import *  # noqa: F403
from kiln._array_api.nan_statistics import __all__ as _nan_statistics
from kiln._array_api.samples import *  # noqa: F403
from kiln._array_api.samples import __all__ as _samples
from kiln._array_api.searching import *  # noqa: F403
from kiln._array_api.searching import __all__ as _searching
from kiln._array_api.sets import *  # noqa: F403
from kiln._array_api.sets import __all__ as _sets
from kiln._array_api.sorting import *  # noqa: F403
from kiln._array_api.sorting import __all__ as _sorting
from kiln._array_api.statistical import *  # noqa: F403
from kiln._array_api.statistical import __all__ as _statistical
from kiln._array_api.utility import *  # noqa: F403
from kiln._array_api.utility import __all__ as _utility

__array_api_version__ = "2024.12"
newaxis = None

# PyTorch's names of dtypes. Not in __all__, so that `from kiln import *` keeps Python's own.
half, float, double = float16, float32, float64  # noqa: F405
short, int, long = int16, int32, int64  # noqa: F405

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Cancelled",
    "Connection",
    "DType",
    "DataLoss",
    "DeadlineExceeded",
    "Device",
    "FailedPrecondition",
    "Generator",
    "GradScaler",
    "Internal",
    "InvalidArgument",
    "InvalidIndex",
    "Jit",
    "KilnError",
    "Mesh",
    "NotFound",
    "OutOfRange",
    "PermissionDenied",
    "ResourceExhausted",
    "Tensor",
    "TraceError",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Variable",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "attach",
    "autocast",
    "autograd",
    "bernoulli",
    "bool",
    "connect",
    "default_connection",
    "devices",
    "e",
    "enable_grad",
    "functional",
    "get_float32_matmul_precision",
    "grad",
    "inf",
    "is_grad_enabled",
    "jit",
    "linalg",
    "load",
    "manual_seed",
    "multinomial",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "normal",
    "ops",
    "optim",
    "pi",
    "rand",
    "randint",
    "randn",
    "random",
    "randperm",
    "realize",
    "save",
    "set_float32_matmul_precision",
    "shard",
    "uniform",
    "value_and_grad",
    *_creation,
    *_data_types,
    *_dtypes,
    *_elementwise,
    *_linear_algebra,
    *_manipulation,
    *_methods,
    *_neural,
    *_nan_statistics,
    *_samples,
    *_searching,
    *_sets,
    *_sorting,
    *_statistical,
    *_utility,
]  # fmt: skip
