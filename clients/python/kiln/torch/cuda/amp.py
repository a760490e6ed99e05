"""torch.cuda.amp: mixed precision, under older names."""

import time
from typing import Any

from kiln.torch import amp as _amp


class autocast(_amp.autocast):  # noqa: N801
    """Inside, heavy operations compute in `dtype`, float16 by default."""

    def __init__(self, enabled: bool = True, dtype: Any = None,
                 cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled)


class GradScaler(_amp.GradScaler):
    """Scales the loss so that float16 gradients do not underflow."""

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)


custom_fwd, custom_bwd = _amp.custom_fwd, _amp.custom_bwd
now = time.perf_counter
