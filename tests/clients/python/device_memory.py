"""How much memory of devices something takes."""

import time

import numpy as np

import kiln


def _used():
    return np.array([device.memory_used for device in kiln.devices()]) / 2**20


class DeviceMemory:
    """What all devices have more than when this was made, in MiB."""

    def __init__(self):
        kiln.default_connection().synchronize()
        # A session that has ended may still give back.
        self._before = _used()
        for _ in range(3):
            time.sleep(0.02)
            before, self._before = self._before, _used()
            while not np.array_equal(before, self._before):
                time.sleep(0.02)
                before, self._before = self._before, _used()

    def taken(self, most):
        """By device. Where it is more than `most`, that is after some seconds.

        A program's last results are there before its thread has given back what it worked with.
        """
        kiln.default_connection().synchronize()
        deadline = time.monotonic() + 10
        while True:
            taken = _used() - self._before
            if np.all(taken <= most) or time.monotonic() > deadline:
                return taken
            time.sleep(0.01)
