"""Weights and data that do not depend on a library's random numbers."""

import numpy as np
import torch


def set_weights(module, seed=0):
    """Sets all Parameters to numbers from NumPy, in the scale of usual initial values."""
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1:
                fan = parameter.shape[1] * int(np.prod(parameter.shape[2:]))
                values = random.normal(0, (1.0 / fan) ** 0.5, tuple(parameter.shape))
                parameter.copy_(torch.from_numpy(values.astype(np.float32)))
            elif name.endswith("bias"):
                parameter.zero_()
            else:
                parameter.fill_(1.0)


def digits(count, size=12, classes=4, seed=1):
    """Returns images of bars at places that tell their classes, with noise, and the classes."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    images = random.normal(0, 0.3, (count, 1, size, size)).astype(np.float32)
    for image, label in zip(images, labels):
        image[0, label * size // classes: (label + 1) * size // classes, 2:-2] += 1.0
    return torch.from_numpy(images), torch.from_numpy(labels)


def normal(*shape, seed=2):
    """Returns normal numbers from NumPy."""
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32))
