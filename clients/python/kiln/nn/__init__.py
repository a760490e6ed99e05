"""Building blocks of neural networks, with PyTorch's names, parameters and initialisation.

A state_dict has PyTorch's names and shapes, so that its checkpoints load.
"""

from kiln.nn import functional, init, utils
from kiln.nn.activation import (
    GELU,
    LeakyReLU,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)  # fmt: skip
from kiln.nn.attention import (
    MultiheadAttention,
)  # fmt: skip
from kiln.nn.containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)  # fmt: skip
from kiln.nn.convolution import (
    Conv2d,
)  # fmt: skip
from kiln.nn.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
)  # fmt: skip
from kiln.nn.embedding import (
    Embedding,
)  # fmt: skip
from kiln.nn.linear import (
    Bilinear,
    Flatten,
    Identity,
    Linear,
    Unflatten,
)  # fmt: skip
from kiln.nn.loss import (
    CrossEntropyLoss,
    MSELoss,
)  # fmt: skip
from kiln.nn.module import (
    Module,
    Parameter,
)  # fmt: skip
from kiln.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    RMSNorm,
)  # fmt: skip
from kiln.nn.pooling import (
    AvgPool2d,
    MaxPool2d,
)  # fmt: skip
from kiln.nn.recurrent import (
    GRU,
    LSTM,
    RNN,
    GRUCell,
    LSTMCell,
    RNNCell,
)  # fmt: skip
from kiln.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)  # fmt: skip

__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
    "AlphaDropout",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "RNNCell",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
    "functional",
    "init",
    "utils",
]  # fmt: skip
