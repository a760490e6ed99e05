"""Optimizers, learning rate schedulers, and averages of parameters, with PyTorch's names.

Their state and the learning rates are tensors on the device. So a step inside kiln.jit needs no
separate message, and changing a learning rate does not trace anything again.
"""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from kiln.optim import lr_scheduler
from kiln.optim.accumulation import GradientAccumulation
from kiln.optim.adam_variants import Adadelta, Adamax, NAdam, RAdam
from kiln.optim.adaptive import LAMB, Adagrad, Adam, AdamW, RMSprop
from kiln.optim.averaging import EMA
from kiln.optim.muon import Muon
from kiln.optim.optimizer import Optimizer, ParameterGroup
from kiln.optim.sgd import SGD

__all__ = [
    "EMA", "LAMB", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "GradientAccumulation",
    "Muon", "NAdam", "Optimizer", "ParameterGroup", "RAdam", "RMSprop", "lr_scheduler",
]
