"""Functions of `kiln` that are methods of Tensor, too, such as x.trace() for kiln.trace(x).

They need a complete class, so importing this module attaches them last.
"""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from typing import Any, Callable, Dict

from kiln._array_api.elementwise.numbers import nan_to_num
from kiln._array_api.elementwise.special import logaddexp2
from kiln._array_api.factorization import cholesky, det, inv, matrix_power, qr, slogdet
from kiln._array_api.linear_algebra import (
    cross,
    diag,
    diag_embed,
    inner,
    kron,
    matmul,
    outer,
    trace,
    vdot,
)
from kiln._array_api.nan_statistics import nanmean, nansum
from kiln._array_api.samples import bincount, corrcoef, cov
from kiln._array_api.sets import unique
from kiln._array_api.sorting import kthvalue, quantile
from kiln._array_api.utility import diff
from kiln._tensor.attached import AttachedMethods
from kiln.random import multinomial

METHODS: Dict[str, Callable[..., Any]] = {
    "bincount": bincount,
    "cholesky": cholesky,
    "corrcoef": corrcoef,
    "cov": cov,
    "cross": cross,
    "det": det,
    "diag": diag,
    "diag_embed": diag_embed,
    "diff": diff,
    "inner": inner,
    "inverse": inv,
    "kron": kron,
    "kthvalue": kthvalue,
    "logaddexp2": logaddexp2,
    "matrix_power": matrix_power,
    "multinomial": multinomial,
    "mv": matmul,
    "nan_to_num": nan_to_num,
    "nanmean": nanmean,
    "nansum": nansum,
    "outer": outer,
    "qr": qr,
    "quantile": quantile,
    "slogdet": slogdet,
    "trace": trace,
    "unique": unique,
    "vdot": vdot,
}

for _name, _function in METHODS.items():
    setattr(AttachedMethods, _name, _function)
