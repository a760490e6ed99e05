"""The same batch and weights for both sides of a training step, so that their losses must agree."""

import math

import numpy

# Images, channels, height and width, classes.
IMAGES = {"convnet": (128, 1, 28, 10), "resnet50": (8, 3, 224, 1000), "resnet18": (64, 3, 32, 10)}
VOCABULARY, CONTEXT = 50257, 256


def batch(model: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns inputs and labels: images of float32 (N, C, H, W) and classes (N), or tokens (1, T) and the next ones."""
    random = numpy.random.default_rng(0)
    if model == "gpt2":
        tokens = random.integers(0, VOCABULARY, (1, CONTEXT + 1))
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()
    count, channels, size, classes = IMAGES[model]
    return random.random((count, channels, size, size), dtype=numpy.float32), random.integers(0, classes, count)


def weight(number: int, name: str, shape: tuple[int, ...]) -> numpy.ndarray:
    """Returns parameter `number`, in the order of kiln's model: biases 0, factors of norms 1, others normally distributed."""
    if len(shape) == 1:
        return numpy.full(shape, 0 if name.endswith("bias") else 1, numpy.float32)
    # An embedding's rows are looked up, so it has no sum over inputs.
    deviation = 0.02 if name in ("wte.weight", "wpe.weight") else 1 / math.sqrt(math.prod(shape[1:]))
    return (numpy.random.default_rng([1, number]).standard_normal(shape, numpy.float32) * numpy.float32(deviation))
