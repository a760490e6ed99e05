"""How much memory of devices something takes."""

import numpy as np

import kiln

from eventually import eventually


def _used():
    return np.array([device.memory_used for device in kiln.devices()]) / 2**20


class DeviceMemory:
    """What tensors take on all devices of a new daemon. (Programs that have run keep some memory, whoever ran them.)"""

    def __init__(self):
        assert not _used().any(), _used()

    def taken(self, most):
        """In MiB, by device, once it is no more than `most`; if it stays more, that.

        A program's last results are there before its thread has given back what it worked with.
        """
        kiln.default_connection().synchronize()
        eventually(lambda: np.all(_used() <= most))
        return _used()
