"""Learning rate schedulers, with PyTorch's names.

Call a scheduler's step() after the call of the jitted step, not inside it: it sets the groups'
learning rates, which are tensors that the next call reads.

>>> optimizer = kiln.optim.SGD([kiln.nn.Parameter([1.0])], lr=0.8)
>>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
>>> for _ in range(4):
...     print(optimizer.lr)  # optimizer.step() stands here
...     scheduler.step()
0.8
0.8
0.4
0.4
"""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from kiln.optim.lr_scheduler.chained import ChainedScheduler
from kiln.optim.lr_scheduler.cosine import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    OneCycleLR,
)
from kiln.optim.lr_scheduler.cyclic import CyclicLR
from kiln.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from kiln.optim.lr_scheduler.scheduler import LRScheduler
from kiln.optim.lr_scheduler.sequence import SequentialLR
from kiln.optim.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR",
    "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]
