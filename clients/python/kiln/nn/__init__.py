"""Building blocks of neural networks, with PyTorch's names and default initialisation."""

from kiln import functional
from kiln.nn import init
from kiln.nn.layers import (
    GELU,
    AvgPool2d,
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    LayerNorm,
    LeakyReLU,
    Linear,
    MaxPool2d,
    MSELoss,
    ReLU,
    RMSNorm,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)  # fmt: skip
from kiln.nn.module import Module, ModuleList, Parameter, Sequential

__all__ = [
    "GELU", "AvgPool2d", "BatchNorm1d", "BatchNorm2d", "Conv2d", "CrossEntropyLoss", "Dropout",
    "Embedding", "Flatten", "Identity", "LayerNorm", "LeakyReLU", "Linear", "MSELoss", "MaxPool2d",
    "Module", "ModuleList", "Parameter", "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid",
    "Softmax", "Tanh", "functional", "init",
]  # fmt: skip
