"""Modules compared with PyTorch's: names of the state, results, gradients, buffers afterwards."""

import numpy as np
import pytest

import kiln
from kiln import nn
from torch_oracle import flat, inputs_of, weights_of

ONE_SESSION = True

N = "normal"


def case(make, *inputs, call=None, evaluate=False, name=None):
    arguments = ", ".join(f"x{i}" for i in range(len(inputs)))
    call = call or f"m({arguments})"
    title = name or (make + ("" if call == f"m({arguments})" else f" {call}") + (
        " eval" if evaluate else ""))
    return {"name": title.replace("nn.", "").replace("/", ":"), "make": make, "call": call,
            "inputs": inputs, "eval": evaluate}


CASES = [
    # Linear.
    case("nn.Linear(5, 3)", (N, (4, 5))),
    case("nn.Linear(5, 3, bias=False)", (N, (2, 4, 5))),
    case("nn.Bilinear(3, 4, 5)", (N, (2, 6, 3)), (N, (2, 6, 4))),
    case("nn.Bilinear(3, 4, 5, bias=False)", (N, (6, 3)), (N, (6, 4))),
    case("nn.Flatten(1, 2)", (N, (2, 3, 4, 5))),
    case("nn.Unflatten(1, (2, 3))", (N, (2, 6, 4))),
    case("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))", (N, (5, 3))),
    case("nn.Embedding(7, 3)", ("below:7", (2, 5))),
    case("nn.Embedding(7, 3, padding_idx=2)", ("below:7", (4, 5))),
    case("nn.EmbeddingBag(7, 3)", ("below:7", (4, 5))),
    case("nn.EmbeddingBag(7, 3, mode='max', padding_idx=2)", ("below:7", (4, 5))),
    case("nn.utils.weight_norm(nn.Linear(5, 3))", (N, (4, 5))),
    case("nn.utils.weight_norm(nn.Conv2d(2, 3, 2), dim=1)", (N, (1, 2, 4, 4))),
    case("nn.utils.weight_norm(nn.Linear(5, 3), dim=None)", (N, (4, 5))),
    # Convolutions.
    case("nn.Conv1d(4, 6, 3, stride=2, padding=1)", (N, (2, 4, 9))),
    case("nn.Conv1d(4, 6, 4, padding='same', dilation=2)", (N, (4, 9))),
    case("nn.Conv1d(4, 6, 3, padding=2, padding_mode='circular')", (N, (2, 4, 9))),
    case("nn.Conv2d(4, 6, 3, stride=2, padding=1)", (N, (2, 4, 7, 8))),
    case("nn.Conv2d(4, 6, (3, 2), dilation=2, groups=2)", (N, (2, 4, 8, 7))),
    case("nn.Conv2d(4, 4, 3, padding=(1, 2), padding_mode='reflect', groups=4, bias=False)",
         (N, (2, 4, 5, 6))),
    case("nn.Conv2d(2, 3, 3, padding='valid')", (N, (2, 5, 6))),
    case("nn.Conv3d(2, 4, (3, 2, 1), stride=(1, 2, 1), padding=(1, 0, 0))", (N, (2, 2, 4, 5, 3))),
    case("nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1)", (N, (2, 4, 5))),
    case("nn.ConvTranspose2d(4, 6, 3, stride=(2, 1), groups=2, dilation=2)", (N, (2, 4, 4, 5))),
    case("nn.ConvTranspose2d(2, 3, 3, stride=2)", (N, (2, 2, 4, 5)),
         call="m(x0, output_size=(10, 11))"),
    case("nn.ConvTranspose3d(2, 3, 2, stride=2, bias=False)", (N, (1, 2, 2, 3, 2))),
    # Pooling.
    case("nn.MaxPool1d(3, 2, 1)", (N, (2, 3, 8))),
    case("nn.MaxPool2d(3, 2, 1)", (N, (2, 3, 8, 7))),
    case("nn.MaxPool2d((3, 2), dilation=2, ceil_mode=True)", (N, (3, 9, 8))),
    case("nn.MaxPool3d(2, stride=1)", (N, (2, 3, 4, 3, 5))),
    case("nn.AvgPool1d(3, 2, 1, count_include_pad=False)", (N, (2, 3, 8))),
    case("nn.AvgPool2d(2)", (N, (2, 3, 6, 8))),
    case("nn.AvgPool2d(3, 2, 1, ceil_mode=True)", (N, (2, 3, 6, 8))),
    case("nn.AvgPool3d(2)", (N, (2, 2, 4, 4, 4))),
    case("nn.AdaptiveAvgPool1d(3)", (N, (2, 3, 7))),
    case("nn.AdaptiveAvgPool2d((3, None))", (N, (2, 3, 8, 5))),
    case("nn.AdaptiveAvgPool3d(2)", (N, (1, 2, 4, 5, 6))),
    case("nn.AdaptiveMaxPool1d(3)", (N, (2, 3, 7))),
    case("nn.AdaptiveMaxPool2d((3, 2))", (N, (2, 3, 8, 5))),
    case("nn.AdaptiveMaxPool3d(2)", (N, (1, 2, 4, 5, 6))),
    case("nn.LPPool1d(2, 3)", ("uniform", (2, 3, 8))),
    case("nn.LPPool2d(3, 2, stride=1)", ("uniform", (2, 3, 5, 6))),
    # Images.
    case("nn.Upsample(scale_factor=2)", (N, (1, 2, 3, 4))),
    case("nn.Upsample(size=7, mode='linear')", (N, (2, 2, 4))),
    case("nn.Upsample(scale_factor=(2, 1.5), mode='bilinear')", (N, (1, 2, 3, 4))),
    case("nn.Upsample(size=(5, 7), mode='bicubic', align_corners=True)", (N, (1, 2, 4, 4))),
    case("nn.Upsample(scale_factor=2, mode='trilinear')", (N, (1, 2, 2, 3, 2))),
    case("nn.UpsamplingNearest2d(scale_factor=3)", (N, (1, 2, 3, 2))),
    case("nn.UpsamplingBilinear2d(size=(5, 6))", (N, (1, 2, 3, 4))),
    case("nn.Unfold((2, 3), padding=1, stride=2)", (N, (2, 3, 5, 6))),
    case("nn.Fold((5, 6), (2, 3), padding=1, stride=2)", (N, (2, 12, 9))),
    case("nn.PixelShuffle(2)", (N, (2, 8, 3, 2))),
    case("nn.PixelUnshuffle(2)", (N, (2, 2, 4, 6))),
    case("nn.ZeroPad2d((1, 2, 0, 1))", (N, (1, 2, 3, 4))),
    case("nn.ConstantPad1d(2, 1.5)", (N, (1, 2, 4))),
    case("nn.ConstantPad3d(1, -1.0)", (N, (1, 2, 2, 3, 2))),
    case("nn.ReflectionPad1d((2, 1))", (N, (1, 2, 4))),
    case("nn.ReflectionPad2d(1)", (N, (1, 2, 3, 4))),
    case("nn.ReplicationPad2d((2, 0, 1, 1))", (N, (1, 2, 3, 4))),
    case("nn.ReplicationPad3d(1)", (N, (1, 2, 2, 3, 2))),
    # Activations.
    *[case(f"nn.{name}", (N, (4, 6))) for name in (
        "ReLU()", "ReLU6()", "LeakyReLU(0.2)", "PReLU()", "ELU(0.7)", "CELU(1.5)", "SELU()",
        "GELU()", "Sigmoid()", "Hardsigmoid()", "LogSigmoid()", "Tanh()", "Tanhshrink()",
        "Hardtanh(-0.5, 0.7)", "SiLU()", "Hardswish()", "Mish()", "Softplus(2.0, 1.5)",
        "Softsign()", "Softshrink(0.3)", "Hardshrink(0.4)", "Threshold(0.1, -2.0)", "GLU(1)",
        "Softmax(0)", "Softmin(1)", "LogSoftmax(-1)", "Identity()")],
    case("nn.GELU('tanh')", (N, (4, 6))),
    case("nn.PReLU(3)", (N, (2, 3, 4))),
    case("nn.RReLU()", (N, (4, 6)), evaluate=True),
    case("nn.Softmax2d()", (N, (2, 3, 2, 2))),
    case("nn.LocalResponseNorm(3, alpha=0.5, k=2.0)", (N, (2, 5, 3))),
    # Losses.
    *[case(f"nn.{name}(reduction='{reduction}')", (N, (4, 5)), (N, (4, 5)))
      for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss")
      for reduction in ("mean", "sum", "none")],
    case("nn.SmoothL1Loss(beta=0.3)", (N, (4, 5)), (N, (4, 5))),
    case("nn.HuberLoss(delta=0.3)", (N, (4, 5)), (N, (4, 5))),
    case("nn.CrossEntropyLoss()", (N, (6, 4)), ("below:4", (6,))),
    case("nn.CrossEntropyLoss(ignore_index=1, label_smoothing=0.2)", (N, (8, 4, 3)),
         ("below:4", (8, 3))),
    case("nn.CrossEntropyLoss(reduction='none', label_smoothing=0.1)", (N, (6, 4)),
         ("below:4", (6,))),
    case("nn.CrossEntropyLoss(reduction='sum')", (N, (6, 4)), ("uniform!", (6, 4))),
    case("nn.NLLLoss(ignore_index=2)", (N, (8, 4)), ("below:4", (8,))),
    case("nn.NLLLoss(reduction='sum')", (N, (3, 4, 2)), ("below:4", (3, 2))),
    case("nn.BCELoss()", ("uniform", (4, 5)), ("uniform!", (4, 5))),
    case("nn.BCEWithLogitsLoss(reduction='sum')", (N, (4, 5)), ("uniform!", (4, 5))),
    case("nn.KLDivLoss(reduction='batchmean')", (N, (4, 5)), ("uniform!", (4, 5))),
    case("nn.KLDivLoss(reduction='sum', log_target=True)", (N, (4, 5)), ("normal!", (4, 5))),
    case("nn.HingeEmbeddingLoss(0.7)", (N, (4, 5)), ("sign!", (4, 5))),
    case("nn.MarginRankingLoss(0.2)", (N, (6,)), (N, (6,)), ("sign!", (6,))),
    case("nn.SoftMarginLoss()", (N, (4, 5)), ("sign!", (4, 5))),
    case("nn.MultiLabelSoftMarginLoss()", (N, (4, 5)), ("uniform!", (4, 5))),
    case("nn.CosineEmbeddingLoss(0.1)", (N, (4, 5)), (N, (4, 5)), ("sign!", (4,))),
    case("nn.TripletMarginLoss(swap=True)", (N, (4, 5)), (N, (4, 5)), (N, (4, 5))),
    case("nn.GaussianNLLLoss(full=True)", (N, (4, 5)), (N, (4, 5)), ("uniform", (4, 5))),
    case("nn.PoissonNLLLoss()", (N, (4, 5)), ("uniform!", (4, 5))),
    case("nn.PoissonNLLLoss(log_input=False, full=True)", ("uniform", (4, 5)), ("normal!", (4, 5))),
    case("nn.CosineSimilarity(1)", (N, (4, 5, 2)), (N, (4, 5, 2))),
    case("nn.PairwiseDistance(3.0)", (N, (4, 5)), (N, (4, 5))),
    # Normalization.
    case("nn.BatchNorm1d(4)", (N, (6, 4))),
    case("nn.BatchNorm1d(4)", (N, (6, 4, 5)), name="BatchNorm1d of three dimensions"),
    case("nn.BatchNorm2d(4, momentum=0.3)", (N, (3, 4, 5, 6))),
    case("nn.BatchNorm2d(4, momentum=None)", (N, (3, 4, 5, 6)), call="(m(x0), m(2 * x0))"),
    case("nn.BatchNorm2d(4)", (N, (3, 4, 5, 6)), evaluate=True),
    case("nn.BatchNorm2d(4, affine=False)", (N, (3, 4, 5, 6))),
    case("nn.BatchNorm2d(4, track_running_stats=False)", (N, (3, 4, 5, 6)), evaluate=True),
    case("nn.BatchNorm3d(2)", (N, (3, 2, 3, 4, 2))),
    case("nn.InstanceNorm1d(4)", (N, (3, 4, 6))),
    case("nn.InstanceNorm2d(4, affine=True, track_running_stats=True)", (N, (3, 4, 5, 6))),
    case("nn.InstanceNorm2d(4, track_running_stats=True)", (N, (3, 4, 5, 6)), evaluate=True),
    case("nn.InstanceNorm3d(2)", (N, (2, 2, 3, 4, 2))),
    case("nn.GroupNorm(2, 6)", (N, (3, 6, 5))),
    case("nn.GroupNorm(3, 6, affine=False)", (N, (3, 6, 4, 5))),
    case("nn.LayerNorm(6)", (N, (3, 5, 6))),
    case("nn.LayerNorm((5, 6), eps=1e-3)", (N, (3, 5, 6))),
    case("nn.LayerNorm(6, elementwise_affine=False)", (N, (3, 6))),
    # Recurrent.
    case("nn.RNN(3, 4)", (N, (5, 2, 3))),
    case("nn.RNN(3, 4, num_layers=2, nonlinearity='relu', bidirectional=True)", (N, (5, 2, 3))),
    case("nn.LSTM(3, 4)", (N, (5, 2, 3))),
    case("nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)", (N, (2, 5, 3))),
    case("nn.LSTM(3, 4, bias=False)", (N, (5, 3)), (N, (1, 4)), (N, (1, 4)),
         call="m(x0, (x1, x2))"),
    case("nn.LSTM(3, 5, num_layers=2, proj_size=2)", (N, (4, 2, 3)), (N, (2, 2, 2)),
         (N, (2, 2, 5)), call="m(x0, (x1, x2))"),
    case("nn.GRU(3, 4)", (N, (5, 2, 3)), (N, (1, 2, 4))),
    case("nn.GRU(3, 4, num_layers=2, bidirectional=True)", (N, (5, 2, 3))),
    case("nn.RNNCell(3, 4)", (N, (2, 3)), (N, (2, 4))),
    case("nn.LSTMCell(3, 4)", (N, (2, 3))),
    case("nn.LSTMCell(3, 4, bias=False)", (N, (3,)), (N, (4,)), (N, (4,)), call="m(x0, (x1, x2))"),
    case("nn.GRUCell(3, 4)", (N, (2, 3)), (N, (2, 4))),
    # Attention.
    case("nn.MultiheadAttention(8, 2)", (N, (5, 3, 8)), (N, (4, 3, 8)), (N, (4, 3, 8))),
    case("nn.MultiheadAttention(8, 2, batch_first=True)", (N, (3, 5, 8)),
         call="m(x0, x0, x0, average_attn_weights=False)"),
    case("nn.MultiheadAttention(8, 2, batch_first=True)", (N, (3, 5, 8)),
         call="m(x0, x0, x0, need_weights=False)"),
    case("nn.MultiheadAttention(8, 2, bias=False)", (N, (5, 8)), (N, (4, 8)), (N, (4, 8))),
    case("nn.MultiheadAttention(8, 4, kdim=5, vdim=6)", (N, (5, 3, 8)), (N, (4, 3, 5)),
         (N, (4, 3, 6))),
    case("nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)", (N, (5, 3, 8)),
         (N, (4, 3, 8)), (N, (4, 3, 8)), ("true:0.3", (3, 4)), ("true:0.3", (5, 4)),
         call="m(x0, x1, x2, key_padding_mask=x3, attn_mask=x4)"),
    case("nn.MultiheadAttention(8, 2)", (N, (5, 3, 8)), (N, (4, 3, 8)), (N, (4, 3, 8)),
         (N, (5, 4)), call="m(x0, x1, x2, attn_mask=x3)"),
    case("nn.MultiheadAttention(8, 2)", (N, (5, 3, 8)), (N, (6, 5, 5)),
         call="m(x0, x0, x0, attn_mask=x1)"),
    case("nn.TransformerEncoderLayer(8, 2, 16, dropout=0)", (N, (5, 3, 8))),
    case("nn.TransformerEncoderLayer(8, 2, 16, 0, 'gelu', batch_first=True, norm_first=True)",
         (N, (3, 5, 8)), ("true:0.2", (5, 5)), call="m(x0, x1)"),
    case("nn.TransformerDecoderLayer(8, 2, 16, dropout=0)", (N, (5, 3, 8)), (N, (4, 3, 8)),
         call="m(x0, x1, tgt_mask=nn.Transformer.generate_square_subsequent_mask(5))"),
    case("nn.TransformerDecoderLayer(8, 2, 16, dropout=0, norm_first=True)", (N, (5, 3, 8)),
         (N, (4, 3, 8))),
    case("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0), 2, nn.LayerNorm(8))",
         (N, (5, 3, 8))),
    case("nn.Transformer(8, 2, 1, 2, 16, dropout=0, batch_first=True)", (N, (3, 5, 8)),
         (N, (3, 4, 8))),
]  # fmt: skip


@pytest.fixture(scope="module")
def expected(ask_torch):
    return ask_torch("modules", CASES)


def test_names_of_cases_differ():
    names = [one["name"] for one in CASES]
    assert len(set(names)) == len(names)


def part(expected, case, kind):
    prefix = f"{case['name']}/{kind}/"
    return {name[len(prefix) :]: array for name, array in expected.items()
            if name.startswith(prefix)}


def assert_close(ours, theirs, what):
    assert ours.shape == theirs.shape, what
    scale = np.abs(theirs[np.isfinite(theirs)]).max() if theirs.size else 1.0
    np.testing.assert_allclose(
        ours, theirs, rtol=1e-5, atol=1e-5 * max(float(scale), 1.0), err_msg=what)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_module(connection, expected, case):
    module = eval(case["make"], {"nn": nn})
    if case["eval"]:
        module.eval()
    module.load_state_dict(part(expected, case, "state"))
    inputs = [kiln.tensor(array) for array in inputs_of(case)]
    for x, (kind, _) in zip(inputs, case["inputs"]):
        x.requires_grad_(x.is_floating_point() and not kind.endswith("!"))
    names = {f"x{i}": x for i, x in enumerate(inputs)}
    outputs = flat(eval(case["call"], {"m": module, "nn": nn, **names}), kiln.Tensor)
    weights = weights_of([output.shape for output in outputs])
    losses = [(output * kiln.tensor(weight)).sum()
              for output, weight in zip(outputs, weights) if output.requires_grad]
    if losses:
        sum(losses[1:], losses[0]).backward()
    found = {f"output/{i}": output for i, output in enumerate(outputs)}
    found.update({f"input_gradient/{i}": x.grad for i, x in enumerate(inputs)
                  if x.grad is not None})
    found.update({f"gradient/{name}": parameter.grad
                  for name, parameter in module.named_parameters() if parameter.grad is not None})
    found.update({f"buffer/{name}": buffer for name, buffer in module.named_buffers()})
    kiln.realize(*found.values())
    wanted = {f"{kind}/{name}": array
              for kind in ("output", "input_gradient", "gradient", "buffer")
              for name, array in part(expected, case, kind).items()}
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        assert_close(found[name].numpy(), array, name)
