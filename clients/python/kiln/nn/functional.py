"""kiln.functional, at the place where PyTorch has it.

>>> import kiln.nn.functional as F
>>> F.relu(kiln.tensor([-1.0, 2.0])).tolist()
[0.0, 2.0]
"""

from kiln.functional import *  # noqa: F403
from kiln.functional import __all__ as __all__
