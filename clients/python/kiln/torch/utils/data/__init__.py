"""torch.utils.data: data sets, samplers and batches."""

from kiln.torch.utils.data import dataloader, dataset, distributed, sampler
from kiln.torch.utils.data.dataloader import *  # noqa: F403
from kiln.torch.utils.data.dataset import *  # noqa: F403
from kiln.torch.utils.data.distributed import *  # noqa: F403
from kiln.torch.utils.data.sampler import *  # noqa: F403

__all__ = []
__all__ += dataloader.__all__
__all__ += dataset.__all__
__all__ += distributed.__all__
__all__ += sampler.__all__
