"""Functions of `kiln` that are methods of Tensor, too, such as x.trace() for kiln.trace(x).

They need a complete class, so importing this module attaches them last.
"""

from typing import Any, Callable, Dict

from kiln import linalg, random
from kiln._array_api import (
    elementwise,
    linear_algebra,
    nan_statistics,
    samples,
    sets,
    sorting,
    utility,
)
from kiln._tensor.attached import AttachedMethods

METHODS: Dict[str, Callable[..., Any]] = {
    "bincount": samples.bincount,
    "cholesky": linalg.cholesky,
    "corrcoef": samples.corrcoef,
    "cov": samples.cov,
    "cross": linear_algebra.cross,
    "det": linalg.det,
    "diag": linear_algebra.diag,
    "diag_embed": linear_algebra.diag_embed,
    "diff": utility.diff,
    "inner": linear_algebra.inner,
    "inverse": linalg.inv,
    "kron": linear_algebra.kron,
    "kthvalue": sorting.kthvalue,
    "logaddexp2": elementwise.logaddexp2,
    "matrix_power": linalg.matrix_power,
    "multinomial": random.multinomial,
    "mv": linear_algebra.matmul,
    "nan_to_num": elementwise.nan_to_num,
    "nanmean": nan_statistics.nanmean,
    "nansum": nan_statistics.nansum,
    "outer": linear_algebra.outer,
    "qr": linalg.qr,
    "quantile": sorting.quantile,
    "slogdet": linalg.slogdet,
    "trace": linear_algebra.trace,
    "unique": sets.unique,
    "vdot": linear_algebra.vdot,
}

for _name, _function in METHODS.items():
    setattr(AttachedMethods, _name, _function)
