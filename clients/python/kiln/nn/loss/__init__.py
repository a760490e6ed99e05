"""Losses as modules. `reduction` is "mean", "sum" or "none"."""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from kiln.nn.loss.classification import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    KLDivLoss,
    MultiLabelSoftMarginLoss,
    NLLLoss,
    SoftMarginLoss,
)
from kiln.nn.loss.distance import (
    CosineEmbeddingLoss,
    CosineSimilarity,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    PairwiseDistance,
    TripletMarginLoss,
)
from kiln.nn.loss.regression import (
    GaussianNLLLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
    PoissonNLLLoss,
    SmoothL1Loss,
)

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
    "MarginRankingLoss", "MultiLabelSoftMarginLoss", "NLLLoss", "PairwiseDistance",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
]
