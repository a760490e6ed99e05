"""kiln.models: sizes and names are those of the published weights; generation with a cache."""

import numpy as np
import pytest

import kiln
from kiln.models import GPT, GPTConfig, resnet18, resnet34, resnet50, resnet101


@pytest.mark.parametrize(("make", "count"), [
    (resnet18, 11_689_512), (resnet34, 21_797_672), (resnet50, 25_557_032),
    (resnet101, 44_549_160),
])  # fmt: skip
def test_residual_networks_have_the_published_number_of_parameters(make, count):
    model = make()
    assert sum(parameter.numel() for parameter in model.parameters()) == count
    assert model(kiln.zeros(2, 3, 64, 64)).shape == (2, 1000)
    names = dict(model.named_parameters())
    assert {"conv1.weight", "layer1.0.bn1.bias", "layer2.0.downsample.0.weight",
            "layer4.1.conv2.weight", "fc.bias"} <= set(names)


def test_small_images_keep_their_size_in_the_stem():
    assert resnet18(10, small_images=True)(kiln.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_gpt_has_gpt2s_parameters():
    model = GPT(GPTConfig())
    assert sum(parameter.numel() for parameter in model.parameters()) == 124_439_808
    names = dict(model.named_parameters())
    assert {"wte.weight", "wpe.weight", "h.11.attn.c_attn.bias", "h.0.mlp.c_proj.weight",
            "ln_f.weight"} <= set(names)


def test_gpt_refuses_what_does_not_fit():
    with pytest.raises(kiln.InvalidArgument, match="7 heads"):
        GPTConfig(heads=7)
    model = GPT(GPTConfig(vocabulary=8, context=4, layers=1, heads=1, width=4))
    with pytest.raises(kiln.InvalidArgument, match="context of 4"):
        model(kiln.zeros(1, 5, dtype="int64"))


SMALL = GPTConfig(vocabulary=11, context=9, layers=2, heads=2, width=8)


def test_decoding_with_a_cache_is_one_program_and_gives_what_the_whole_text_gives(connection):
    kiln.manual_seed(0)
    model = GPT(SMALL).eval()
    cache = model.new_cache(batch=3)
    tokens = np.random.default_rng(0).integers(0, 11, (3, 9))
    expected = model(kiln.tensor(tokens)).numpy()

    @kiln.jit
    def decode(token, length):
        return model.decode(token, length, cache)

    for position in range(9):
        found = decode(kiln.tensor(tokens[:, position]), model.length(position + 1))
        np.testing.assert_allclose(found.numpy(), expected[:, position], rtol=1e-4, atol=1e-5)
    assert decode.traces == 1 and len(decode.programs()) == 1
    with pytest.raises(kiln.InvalidArgument, match="outside its bounds 1 to 9"):
        model.length(10)


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_published_weights_are_taken_with_their_linear_layers_transposed(connection, prefix):
    model, other = GPT(SMALL), GPT(SMALL)
    published = {}
    for name, value in model.state_dict().items():
        turned = value.ndim == 2 and ".c_" in name
        published[prefix + name] = kiln.tensor(value.numpy().T if turned else value.numpy())
    published[f"{prefix}h.0.attn.bias"] = kiln.ones(1, 1, 9, 9)  # their causal mask
    other.load_pretrained(published)
    tokens = kiln.tensor([[1, 2, 3]])
    np.testing.assert_array_equal(other(tokens).numpy(), model(tokens).numpy())
    del published[f"{prefix}h.1.ln_1.weight"]
    with pytest.raises(kiln.NotFound, match=r"h\.1\.ln_1\.weight"):
        other.load_pretrained(published)
