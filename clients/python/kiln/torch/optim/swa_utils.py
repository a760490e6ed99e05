"""torch.optim.swa_utils: averages of models."""

import copy
import math
from typing import Any, Callable, Iterable, List, Optional

from kiln._graph.gradient_mode import no_grad
from kiln.torch import _creation
from kiln.torch.nn._module import Module
from kiln.torch.optim.lr_scheduler import LRScheduler


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Returns the function of exponential moving averages."""
    return lambda average, present, count: average * decay + present * (1 - decay)


def get_swa_avg_fn() -> Callable[..., Any]:
    """Returns the function of equally weighted averages."""
    return lambda average, present, count: average + (present - average) / (count + 1)


class AveragedModel(Module):
    """A copy of a model whose Parameters are averages of the model's."""

    def __init__(self, model: Any, device: Any = None, avg_fn: Optional[Callable[..., Any]] = None,
                 multi_avg_fn: Any = None, use_buffers: bool = False) -> None:
        super().__init__()
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _creation.tensor(0))
        self.avg_fn = avg_fn or get_swa_avg_fn()
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the averaged model."""
        return self.module(*args, **kwargs)

    def _state(self, model: Any) -> List[Any]:  # type: ignore[override]
        return [*model.parameters(), *(model.buffers() if self.use_buffers else [])]

    def update_parameters(self, model: Any) -> None:
        """Moves the averages towards the model's present Parameters."""
        with no_grad():
            first = int(self.n_averaged) == 0
            for mine, other in zip(self._state(self.module), self._state(model)):
                present = other.detach()
                mine.copy_(present if first or not mine.dtype.is_float else self.avg_fn(
                    mine.detach(), present, self.n_averaged))
            if not self.use_buffers:
                for mine, other in zip(self.module.buffers(), model.buffers()):
                    mine.copy_(other.detach())
            self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Computes the running statistics of batch norms again, from all batches."""
    norms = [module for module in model.modules() if hasattr(module, "reset_running_stats")
             and "momentum" in vars(module)]
    if not norms:
        return
    before = [module.momentum for module in norms]
    training = model.training
    model.train()
    for module in norms:
        module.reset_running_stats()
        module.momentum = None
    with no_grad():
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs if device is None else inputs.to(device))
    for module, momentum in zip(norms, before):
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals the learning rate to a constant one."""

    def __init__(self, optimizer: Any, swa_lr: Any, anneal_epochs: int = 10,
                 anneal_strategy: str = "cos", last_epoch: int = -1) -> None:
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        rates = swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(
            optimizer.param_groups)
        self._swa_lrs = list(rates)
        self._first = [group["lr"] for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> List[Any]:
        """Returns the learning rates of the present epoch."""
        share = max(0.0, min(1.0, self._epoch / max(1, self.anneal_epochs)))
        if self.anneal_strategy == "cos":
            share = (1 - math.cos(math.pi * share)) / 2
        return [last * share + first * (1 - share)
                for first, last in zip(self._first, self._swa_lrs)]


__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_swa_avg_fn", "update_bn"]
