"""Data on their way to a daemon and back."""

import numpy as np

import kiln


def values(seed, size):
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def there_and_back(data):
    return kiln.tensor(data).realize().numpy()
