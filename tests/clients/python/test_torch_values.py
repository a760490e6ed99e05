"""kiln.torch computes what PyTorch computes: recorded.npz has PyTorch's values of torch_cases.py.

tests/clients/python/pytorch/record.py records them again.
"""

# ruff: noqa: E501

import json
import pathlib
import sys

import numpy as np
import pytest

import kiln.torch as torch

FOLDER = pathlib.Path(__file__).resolve().parent / "pytorch"
sys.path.insert(0, str(FOLDER))
import torch_cases  # noqa: E402
import torch_edges  # noqa: E402

ONE_SESSION = True
CHUNKS = 12


@pytest.fixture(scope="module")
def recorded():
    with np.load(FOLDER / "recorded.npz") as arrays:
        return dict(arrays)


def difference(found, expected):
    """Returns what differs, or None."""
    if len(found) != len(expected):
        return f"{len(found)} values, PyTorch has {len(expected)}"
    for ours, theirs in zip(found, expected):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{ours.dtype} of shape {ours.shape}, PyTorch has {theirs.dtype} of {theirs.shape}"
        if ours.dtype.kind in "USbiu":
            if not (ours == theirs).all():
                return f"{ours}, PyTorch has {theirs}"
            continue
        finite = np.abs(theirs[np.isfinite(theirs)])
        noise = 4e-6 * max(1.0, finite.max() if finite.size else 0.0)
        if not np.allclose(ours, theirs, rtol=5e-5, atol=noise, equal_nan=True):
            return f"{ours}, PyTorch has {theirs}"
    return None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_values_are_pytorchs(chunk, recorded, connection):
    counts = json.loads(str(recorded["expressions"]))
    wrong = []
    for number, (expression, count) in enumerate(counts.items()):
        if number % CHUNKS != chunk:
            continue
        try:
            found = torch_cases.evaluate(torch, expression, torch_cases.inputs(torch))
        except Exception as error:
            wrong.append(f"{expression}: {type(error).__name__}: {error}")
            continue
        told = difference(found, [recorded[f"{number}.{i}"] for i in range(count)])
        if told:
            wrong.append(f"{expression}: {told}")
    assert not wrong, "\n".join(wrong)


def test_all_expressions_are_recorded(recorded):
    missing = set(torch_cases.expressions()) - set(json.loads(str(recorded["expressions"])))
    assert not missing, "record them: pytorch/record.py"


@pytest.fixture(scope="module")
def edges():
    with np.load(FOLDER / "recorded_edges.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_values_at_edges_are_pytorchs(chunk, edges, connection):
    counts, _ = json.loads(str(edges["expressions"]))
    wrong = []
    for number, (expression, count) in enumerate(counts.items()):
        if number % CHUNKS != chunk:
            continue
        try:
            found = torch_cases.flat(eval(expression, torch_edges.names(torch)))
        except Exception as error:
            wrong.append(f"{expression}: {type(error).__name__}: {error}")
            continue
        told = difference(found, [edges[f"{number}.{i}"] for i in range(count)])
        if told:
            wrong.append(f"{expression}: {told}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_pytorch_refuses_is_refused(chunk, edges, connection):
    _, refused = json.loads(str(edges["expressions"]))
    wrong = []
    for expression in refused[chunk::CHUNKS]:
        try:
            value = torch_cases.flat(eval(expression, torch_edges.names(torch)))
        except (NameError, AttributeError) as error:
            wrong.append(f"{expression}: {error}")
        except Exception:
            continue
        else:
            wrong.append(f"{expression}: {value}")
    assert not wrong, "\n".join(wrong)


def test_all_edges_are_recorded(edges):
    counts, refused = json.loads(str(edges["expressions"]))
    assert (list(counts), refused) == (torch_edges.expressions(), torch_edges.refused()), (
        "record them: pytorch/record.py edges")
