"""Activations as modules.

`inplace` is accepted for PyTorch's signatures; results are always new.
"""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from kiln.nn.activation.gate import GELU, GLU, Hardswish, Mish, SiLU
from kiln.nn.activation.rectifier import (
    CELU,
    ELU,
    SELU,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Softplus,
)
from kiln.nn.activation.shrink import Hardshrink, Softshrink, Tanhshrink, Threshold
from kiln.nn.activation.sigmoid import Hardsigmoid, Hardtanh, LogSigmoid, Sigmoid, Softsign, Tanh

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid",
    "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]
