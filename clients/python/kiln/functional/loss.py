"""Losses. `reduction` is "mean", "sum", or "none" for one loss per element or row."""

from typing import Any, Optional, Union

from kiln._array_api.creation import zeros_like
from kiln._basics.errors import InvalidArgument
from kiln._graph.checks import Limit, check
from kiln._rules import flag, whole
from kiln._tensor.selection import with_checks
from kiln.functional._arguments import reduction_of, with_optional
from kiln.tensor import Tensor, apply


def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                  ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """-log softmax(input) at the target; classes are dimension 1 (0 if there is no batch).

    target holds integer labels, of input's shape without the classes, or probabilities, of input's
    shape. weight has one factor for each class. Labels equal to ignore_index add nothing and do not
    count in the mean, which is NaN if none counts. Other labels out of range raise IndexError: at
    once if they are known in this process, otherwise with the next value that is read.

    >>> F.cross_entropy(kiln.zeros(2, 4), kiln.tensor([1, 3])).item()
    1.3862943649291992
    """
    return _at_labels("cross_entropy", input, target, weight, ignore_index, reduction,
                      label_smoothing=float(label_smoothing))


def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
             ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """-input at the target, for log probabilities; otherwise as cross_entropy with labels.

    >>> F.nll_loss(kiln.tensor([[-1.0, -2.0]]), kiln.tensor([1])).item()
    2.0
    """
    return _at_labels("nll_loss", input, target, weight, ignore_index, reduction)


def _at_labels(name: str, input: Tensor, target: Tensor, weight: Optional[Tensor],
               ignore_index: int, reduction: str, **attributes: Any) -> Tensor:
    ignored = whole(ignore_index, "ignore_index")
    result = apply(name, with_optional((input, target), weight), ignore_index=ignored,
                   reduction=reduction_of(name, reduction), **attributes)
    classes = input.shape[min(1, input.ndim - 1)]
    return with_checks(result, check(target._node, Limit(
        name, classes, ignored=ignored, what="label", of="classes")))


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The square of input - target.

    >>> F.mse_loss(kiln.tensor([1.0, 3.0]), kiln.zeros(2)).item()
    5.0
    """
    return apply("mse_loss", (input, target), reduction=reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|input - target|.

    >>> F.l1_loss(kiln.tensor([1.0, -3.0]), kiln.zeros(2)).item()
    2.0
    """
    return apply("l1_loss", (input, target), reduction=reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    """d² / (2 * beta) where d = |input - target| is below beta, d - beta / 2 elsewhere.

    >>> F.smooth_l1_loss(kiln.tensor([1.0, -3.0]), kiln.zeros(2), reduction="sum").item()
    3.0
    """
    return apply("smooth_l1_loss", (input, target), beta=float(beta), reduction=reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean",
               delta: float = 1.0) -> Tensor:
    """d² / 2 where d = |input - target| is at most delta, delta * (d - delta / 2) elsewhere.

    >>> F.huber_loss(kiln.tensor([4.0]), kiln.zeros(1), delta=2.0).item()
    6.0
    """
    return apply("huber_loss", (input, target), delta=float(delta), reduction=reduction)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                         reduction: str = "mean") -> Tensor:
    """-log of the probability that input assigns to target; logarithms are at least -100.

    weight broadcasts to input's shape.

    >>> F.binary_cross_entropy(kiln.tensor([0.5]), kiln.tensor([1.0])).item()
    0.6931471824645996
    """
    return apply("binary_cross_entropy", with_optional((input, target), weight),
                 reduction=reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor,
                                     weight: Optional[Tensor] = None, reduction: str = "mean",
                                     pos_weight: Optional[Tensor] = None) -> Tensor:
    """-log of the probability that sigmoid(input) assigns to target; safe for large logits.

    pos_weight multiplies the term of target 1; both weights broadcast to input's shape.

    >>> F.binary_cross_entropy_with_logits(kiln.tensor([0.0]), kiln.tensor([1.0])).item()
    0.6931471824645996
    """
    return apply("binary_cross_entropy_with_logits",
                 with_optional((input, target), weight, pos_weight), reduction=reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    """target * (log target - input), for log probabilities as input.

    With log_target, target has log probabilities as well. reduction may also be "batchmean": the
    sum divided by the size of dimension 0, which is the mathematical definition.

    >>> half = kiln.tensor([[0.5, 0.5]])
    >>> F.kl_div(half.log(), half, reduction="batchmean").item()
    0.0
    """
    by_batch = reduction == "batchmean"
    if by_batch and not input.ndim:
        raise InvalidArgument('kl_div(reduction="batchmean") of a scalar; it needs a batch')
    loss = apply("kl_div", (input, target), log_target=flag(log_target, "log_target"),
                 reduction="sum" if by_batch else reduction)
    return loss / input.shape[0] if by_batch else loss


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         reduction: str = "mean") -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1.

    >>> F.hinge_embedding_loss(kiln.tensor([0.5, 0.5]), kiln.tensor([1.0, -1.0])).item()
    0.5
    """
    return apply("hinge_embedding_loss", (input, target), margin=float(margin),
                 reduction=reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin).

    >>> one = kiln.ones(1)
    >>> F.margin_ranking_loss(one, one * 3, one).item()
    2.0
    """
    return apply("margin_ranking_loss", (input1, input2, target), margin=float(margin),
                 reduction=reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)).

    >>> F.soft_margin_loss(kiln.zeros(1), kiln.ones(1)).item()
    0.6931471824645996
    """
    return apply("soft_margin_loss", (input, target), reduction=reduction)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                                reduction: str = "mean") -> Tensor:
    """The mean over the last dimension of binary cross entropies with logits.

    >>> F.multilabel_soft_margin_loss(kiln.zeros(2, 3), kiln.ones(2, 3)).item()
    0.6931471824645996
    """
    rows = binary_cross_entropy_with_logits(input, target, weight, "none").mean(-1)
    wanted = reduction_of("multilabel_soft_margin_loss", reduction)
    if wanted == "none":
        return rows
    return rows.mean() if wanted == "mean" else rows.sum()


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(input1, input2) for rows whose target is 1, max(0, cos - margin) where it is -1.

    >>> x = kiln.tensor([[1.0, 0.0]])
    >>> F.cosine_embedding_loss(x, x, kiln.tensor([-1.0]), margin=0.5).item()
    0.5
    """
    return apply("cosine_embedding_loss", (input1, input2, target), margin=float(margin),
                 reduction=reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                        reduction: str = "mean") -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin), p-norms of the last dimension.

    With swap, the distance of negative to positive is used if it is smaller than that to anchor.

    >>> x = kiln.zeros(1, 2)
    >>> F.triplet_margin_loss(x, x, x, margin=0.25).item()
    0.25
    """
    return apply(
        "triplet_margin_loss", (anchor, positive, negative), margin=float(margin), p=float(p),
        epsilon=float(eps), swap=flag(swap, "swap"), reduction=reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Union[Tensor, float],
                      full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """-log of target's density under a normal distribution of mean input and variance var.

    var has input's shape, or its last dimension is 1 or missing. Variances below eps count as eps.
    The constant log(2 pi) / 2 is added only with full. Raises InvalidArgument for another shape of
    var.

    >>> F.gaussian_nll_loss(kiln.ones(1), kiln.zeros(1), kiln.ones(1)).item()
    0.5
    """
    spread = var if isinstance(var, Tensor) else zeros_like(input) + float(var)
    if spread.shape == input.shape[:-1] and spread.shape != input.shape:
        spread = spread.unsqueeze(-1)
    if spread.shape != input.shape and spread.shape != (*input.shape[:-1], 1):
        raise InvalidArgument(
            f"gaussian_nll_loss: var of shape {spread.shape} for input of shape {input.shape}")
    return apply("gaussian_nll_loss", (input, target, spread.expand(*input.shape)),
                 full=flag(full, "full"), epsilon=float(eps), reduction=reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     eps: float = 1e-8, reduction: str = "mean") -> Tensor:
    """-log of target's probability under a Poisson distribution of mean exp(input).

    Without log_input the mean is input. log target! (Stirling's approximation) is added only with
    full.

    >>> F.poisson_nll_loss(kiln.zeros(1), kiln.ones(1)).item()
    1.0
    """
    return apply("poisson_nll_loss", (input, target), log_input=flag(log_input, "log_input"),
                 full=flag(full, "full"), epsilon=float(eps), reduction=reduction)
