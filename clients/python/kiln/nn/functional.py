"""kiln.functional under the name that it has in PyTorch.

>>> import kiln.nn.functional as F
>>> F.relu(kiln.tensor([-1.0, 2.0])).tolist()
[0.0, 2.0]
"""

from kiln.functional import *  # noqa: F403
from kiln.functional import __all__ as __all__
