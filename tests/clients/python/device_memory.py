"""Measures the memory used on devices."""

import numpy as np

import kiln

from eventually import eventually


def _used():
    return np.array([device.memory_used for device in kiln.devices()]) / 2**20


class DeviceMemory:
    """The memory used on all devices of a new daemon. (Programs that have run keep some.)"""

    def __init__(self):
        assert not _used().any(), _used()

    def taken(self, mebibytes_max):
        """Returns MiB by device, once it is at most `mebibytes_max`; in the end if it stays more.

        A program's last results arrive before its thread has returned its working memory.
        """
        kiln.default_connection().synchronize()
        eventually(lambda: np.all(_used() <= mebibytes_max))
        return _used()
