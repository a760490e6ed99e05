"""Sends data to a daemon and back."""

import numpy as np

import kiln

from eventually import eventually


def values(seed, size):
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def there_and_back(data):
    return kiln.tensor(data).realize().numpy()


def wait_until_attached(connection):
    """Waits until the client knows whether one call may carry many pieces."""
    assert eventually(lambda: connection._session.blobs.takes_many)
