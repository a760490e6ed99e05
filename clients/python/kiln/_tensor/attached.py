"""Methods of Tensor that are functions of `kiln`, which need the class themselves."""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from typing import Any, Callable

from kiln._tensor.indexing import Indexing

Method = Callable[..., Any]


class AttachedMethods(Indexing):
    """Declares the methods that `kiln/_attached_methods.py` adds."""

    __slots__ = ()

    bincount: Method
    cholesky: Method
    corrcoef: Method
    cov: Method
    cross: Method
    det: Method
    diag: Method
    diag_embed: Method
    diff: Method
    inner: Method
    inverse: Method
    kron: Method
    kthvalue: Method
    logaddexp2: Method
    matrix_power: Method
    multinomial: Method
    mv: Method
    nan_to_num: Method
    nanmean: Method
    nansum: Method
    outer: Method
    qr: Method
    quantile: Method
    slogdet: Method
    trace: Method
    unique: Method
    vdot: Method
