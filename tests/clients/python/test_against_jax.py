"""Training in float32 compared with JAX: the same weights and batches give the same losses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kiln
from kiln import nn
from kiln.models import GPT, GPTConfig

STEPS = 50
BATCHES = 5  # repeated, so that the losses fall


def jax_losses(loss_of, state, batches, lr, weight_decay):
    """Returns the losses of AdamW (Loshchilov and Hutter, 2019) for `loss_of(weights, batch)`."""
    weights = {name: jnp.asarray(value) for name, value in state.items()}
    moments = jax.tree_util.tree_map(lambda w: (jnp.zeros_like(w), jnp.zeros_like(w)), weights)

    @jax.jit
    def step(weights, moments, count, batch):
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
        new_weights, new_moments = {}, {}
        for name, weight in weights.items():
            mean, square = moments[name]
            mean = 0.9 * mean + 0.1 * gradients[name]
            square = 0.999 * square + 0.001 * gradients[name] ** 2
            step = mean / (1 - 0.9**count) / (jnp.sqrt(square / (1 - 0.999**count)) + 1e-8)
            new_weights[name] = weight * (1 - lr * weight_decay) - lr * step
            new_moments[name] = mean, square
        return loss, new_weights, new_moments

    losses = []
    for i in range(STEPS):
        batch = tuple(jnp.asarray(part) for part in batches[i % BATCHES])
        loss, weights, moments = step(weights, moments, float(i + 1), batch)
        losses.append(float(loss))
    return losses


def kiln_losses(loss_of, model, batches, lr, weight_decay):
    optimizer = kiln.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)

    @kiln.jit
    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(*map(kiln.tensor, batches[i % BATCHES])) for i in range(STEPS)]
    assert step.traces == 1
    return [loss.item() for loss in losses]


def cross_entropy(logits, labels):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
    return -chosen.mean()


# A convolutional network.


def convolution(x, weight, bias, stride):
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), ((1, 1), (1, 1))) + bias[:, None, None]


def normalized(x, weight, bias, axes):
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * weight.reshape(shape) + bias.reshape(shape)


def jax_convnet_loss(w, batch):
    x, labels = batch
    x = convolution(x, w["0.weight"], w["0.bias"], 1)
    x = jax.nn.relu(normalized(x, w["1.weight"], w["1.bias"], (0, 2, 3)))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = jax.nn.relu(convolution(x, w["4.weight"], w["4.bias"], 2))
    return cross_entropy(x.reshape(len(x), -1) @ w["7.weight"].T + w["7.bias"], labels)


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 9, 10))


def image_batches(numbers):
    return [(numbers.standard_normal((16, 3, 12, 12)).astype(np.float32),
             numbers.integers(0, 10, 16)) for _ in range(BATCHES)]


# A transformer.

CONFIG = GPTConfig(vocabulary=17, context=24, layers=2, heads=4, width=32)


def layer_norm(w, name, x):
    return normalized_last(x) * w[f"{name}.weight"] + w[f"{name}.bias"]


def normalized_last(x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5)


def linear(w, name, x):
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def jax_gpt_loss(w, batch):
    tokens, targets = batch
    n, t = tokens.shape
    heads, size = CONFIG.heads, CONFIG.width // CONFIG.heads
    x = w["wte.weight"][tokens] + w["wpe.weight"][:t]
    for i in range(CONFIG.layers):
        qkv = linear(w, f"h.{i}.attn.c_attn", layer_norm(w, f"h.{i}.ln_1", x))
        q, k, v = qkv.reshape(n, t, 3, heads, size).transpose(2, 0, 3, 1, 4)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(size)
        scores = jnp.where(np.tril(np.ones((t, t), bool)), scores, -jnp.inf)
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(n, t, -1)
        x = x + linear(w, f"h.{i}.attn.c_proj", y)
        y = jax.nn.gelu(linear(w, f"h.{i}.mlp.c_fc", layer_norm(w, f"h.{i}.ln_2", x)))
        x = x + linear(w, f"h.{i}.mlp.c_proj", y)
    return cross_entropy(layer_norm(w, "ln_f", x) @ w["wte.weight"].T, targets)


def token_batches(numbers):
    texts = numbers.integers(0, CONFIG.vocabulary, (BATCHES, 4, CONFIG.context + 1))
    return [(text[:, :-1], text[:, 1:]) for text in texts]


@pytest.mark.parametrize("name", ["convnet", "transformer"])
def test_losses_are_jaxs(connection, name):
    kiln.manual_seed(0)
    numbers = np.random.default_rng(0)
    if name == "convnet":
        model, batches, theirs = convnet(), image_batches(numbers), jax_convnet_loss

        def ours(batch):
            return nn.functional.cross_entropy(model(batch[0]), batch[1])
    else:
        model, batches, theirs = GPT(CONFIG), token_batches(numbers), jax_gpt_loss

        def ours(batch):
            return model.loss(*batch)
    state = {name: value.numpy() for name, value in model.named_parameters()}
    expected = jax_losses(theirs, state, batches, lr=3e-3, weight_decay=0.1)
    found = kiln_losses(ours, model, batches, lr=3e-3, weight_decay=0.1)
    assert expected[-1] < 0.85 * expected[0]  # it trains
    np.testing.assert_allclose(found, expected, rtol=1e-3)
