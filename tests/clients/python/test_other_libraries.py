"""Libraries that use the array API compute with Kiln's tensors directly."""

import os
import pathlib
import subprocess
import sys

import kiln

from eventually import GIVE_UP_SECONDS

PROGRAM = """
import kiln
import numpy as np
import sklearn
from scipy import special
from sklearn.metrics import mean_squared_error
from sklearn.preprocessing import MinMaxScaler

sklearn.set_config(array_api_dispatch=True)
data = np.array([[1, -2], [3, 6], [5, 2]], np.float32)
x = kiln.tensor(data)
scaled = MinMaxScaler().fit_transform(x)
assert isinstance(scaled, kiln.Tensor)
np.testing.assert_allclose(scaled.numpy(), [[0, 0], [0.5, 1], [1, 0.5]])
assert abs(mean_squared_error(x, x + 2) - 4) < 1e-6
entropy = special.entr(kiln.abs(x))
assert isinstance(entropy, kiln.Tensor)
np.testing.assert_allclose(entropy.numpy(), special.entr(abs(data)), rtol=1e-5)
print("done")
"""


def test_scikit_learn_and_scipy_take_tensors(kilnd):
    package = pathlib.Path(kiln.__file__).resolve().parents[1]
    environment = dict(os.environ, SCIPY_ARRAY_API="1", KILN_ADDRESS=kilnd.address)
    environment["PYTHONPATH"] = os.pathsep.join([str(package), environment.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True,
                          text=True, timeout=GIVE_UP_SECONDS)
    assert done.stdout == "done\n", done.stderr
