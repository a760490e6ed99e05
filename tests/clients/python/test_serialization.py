"""Files of tensors. A daemon is needed only for computed values."""

import json
import math
import os
import struct

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import kiln
from kiln import nn


@pytest.mark.parametrize("name", ["weights.npz", "weights.safetensors"])
def test_tensors_survive_a_file(tmp_path, name):
    tensors = {
        "a.b": kiln.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "scalar": kiln.tensor(3),
        "flags": kiln.tensor([True, False]),
        "empty": kiln.tensor(np.zeros((0, 2), np.float64)),
    }
    kiln.save(tensors, tmp_path / name)
    loaded = kiln.load(tmp_path / name)
    assert list(loaded) == list(tensors)
    for key, tensor in tensors.items():
        assert (loaded[key].dtype, loaded[key].shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(loaded[key].numpy(), tensor.numpy())
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_safetensors_header_is_the_documented_one(tmp_path):
    kiln.save({"x": kiln.tensor([1.0, 2.0])}, tmp_path / "x.safetensors")
    data = (tmp_path / "x.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    assert json.loads(data[8 : 8 + size]) == {
        "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    assert data[8 + size :] == np.array([1, 2], np.float32).tobytes()


ARRAYS = {
    "bool": np.array([True, False]), "empty": np.zeros((3, 0), np.float32),
    "scalar": np.array(2.5), "odd": np.array([1], np.uint8),
    **{f"{kind}{bits}": np.arange(6).astype(f"{kind}{bits}").reshape(2, 3)
       for kind, widths in (("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64)),
                            ("float", (16, 32, 64))) for bits in widths},
}  # fmt: skip


def test_the_safetensors_package_reads_what_is_written(tmp_path):
    path = tmp_path / "x.safetensors"
    kiln.save(ARRAYS, path, metadata={"format": "np"})
    loaded = safetensors.numpy.load_file(path)
    assert set(loaded) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "np"}
    assert kiln.serialization.load_metadata(path) == {"format": "np"}


def test_what_the_safetensors_package_writes_is_read(tmp_path):
    path = tmp_path / "x.safetensors"
    arrays = dict(ARRAYS, bfloat16=np.array([1.5, -3], ml_dtypes.bfloat16),
                  e4m3=np.array([1.5, -448], ml_dtypes.float8_e4m3fn),
                  e5m2=np.array([1.5, -57344], ml_dtypes.float8_e5m2))
    safetensors.numpy.save_file(arrays, path)
    loaded = kiln.load(path)
    assert set(loaded) == set(arrays)
    for name, array in ARRAYS.items():
        assert loaded[name].numpy().dtype == array.dtype
        np.testing.assert_array_equal(loaded[name].numpy(), array)
    assert loaded["bfloat16"].dtype is kiln.bfloat16
    np.testing.assert_array_equal(loaded["bfloat16"].numpy(), [1.5, -3])
    assert loaded["e4m3"].dtype is kiln.float8_e4m3
    assert loaded["e5m2"].dtype is kiln.float8_e5m2
    kiln.save(loaded, tmp_path / "again.safetensors")
    first, again = (dict(safetensors.deserialize(file.read_bytes()))
                    for file in (path, tmp_path / "again.safetensors"))
    assert first == again and len(first) == len(arrays)


def test_values_on_the_device_go_to_a_file_and_back(connection, tmp_path):
    x = kiln.arange(6).float().reshape(2, 3)
    kiln.save({"double": x * 2, "half": x.cast(kiln.bfloat16),
               "eighth": x.cast(kiln.float8_e5m2)}, tmp_path / "x.safetensors")
    loaded = kiln.load(tmp_path / "x.safetensors")
    np.testing.assert_array_equal((loaded["double"] + 1).numpy(), [[1, 3, 5], [7, 9, 11]])
    for name, dtype in (("half", kiln.bfloat16), ("eighth", kiln.float8_e5m2)):
        assert loaded[name].dtype is dtype
        np.testing.assert_array_equal(loaded[name].float().numpy(), [[0, 1, 2], [3, 4, 5]])


def test_a_checkpoint_is_restored_as_it_was(tmp_path):
    checkpoint = {
        "model": {"0.weight": kiln.tensor([1.0]), "deep": [kiln.tensor([2]), {"x": np.ones(2)}]},
        "epoch": 3, "lr": 0.1, "name": "run", "best": None, "done": False, "pair": (1, math.inf),
        "counts": {7: 1}, "model.0.weight": kiln.tensor([5.0]),
    }  # fmt: skip
    kiln.save(checkpoint, tmp_path / "x.safetensors")
    loaded = kiln.load(tmp_path / "x.safetensors")
    assert list(loaded) == list(checkpoint)
    assert loaded["model"]["0.weight"].item() == 1 and loaded["model.0.weight"].item() == 5
    assert loaded["model"]["deep"][0].tolist() == [2]
    assert loaded["model"]["deep"][1]["x"].dtype is kiln.float64
    for name in ("epoch", "lr", "name", "best", "done", "pair", "counts"):
        assert loaded[name] == checkpoint[name] and type(loaded[name]) is type(checkpoint[name])
    assert "model.deep.1.x" in safetensors.numpy.load_file(tmp_path / "x.safetensors")


def test_training_continues_from_a_checkpoint(connection, tmp_path):
    def made():
        kiln.manual_seed(0)
        model = nn.Linear(3, 2)
        return model, kiln.optim.AdamW(model.parameters(), lr=0.1)

    def train(model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(kiln.ones(4, 3)).square().sum().backward()
            optimizer.step()

    model, optimizer = made()
    train(model, optimizer, 2)
    kiln.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
              tmp_path / "x.safetensors")
    train(model, optimizer, 2)
    other, other_optimizer = made()
    loaded = kiln.load(tmp_path / "x.safetensors")
    other.load_state_dict(loaded["model"])
    other_optimizer.load_state_dict(loaded["optimizer"])
    train(other, other_optimizer, 2)
    np.testing.assert_array_equal(other.weight.numpy(), model.weight.numpy())


@pytest.mark.parametrize("value", [object(), {1.5: 2}, {"x": object()}])
def test_what_cannot_be_saved_is_named_and_leaves_no_file(tmp_path, value):
    with pytest.raises(kiln.InvalidArgument):
        kiln.save({"thing": value}, tmp_path / "x.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [object(), {1, 2}, {"x": 1}, "text", None, np.array(["text"])])
def test_an_npz_file_takes_tensors_and_numbers_alone(tmp_path, value):
    with pytest.raises(kiln.InvalidArgument, match="thing is .*npz file can hold only tensors and "
                                                   "numbers"):
        kiln.save({"thing": value}, tmp_path / "x.npz")
    assert not list(tmp_path.iterdir())


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(1,), begin=0, end=4):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


DAMAGED = {
    "nothing": b"", "no length": b"\xff" * 16, "no JSON": file_of(b"nope"),
    "no object": file_of(b"[1]"), "a cut header": file_of({"x": entry()})[:20],
    "a cut tensor": file_of({"x": entry()}, b"123"),
    "too many bytes": file_of({"x": entry()}, b"12345"),
    "another size": file_of({"x": entry(shape=(9,))}, b"1234"),
    "a negative size": file_of({"x": entry(shape=(-1, -1))}, b"1234"),
    "a fraction": file_of({"x": entry(shape=(1.0,))}, b"1234"),
    "a hole": file_of({"x": entry(begin=4, end=8)}, b"12345678"),
    "an overlap": file_of({"x": entry(), "y": entry()}, b"1234"),
    "a missing field": file_of({"x": {"dtype": "F32", "shape": [1]}}, b"1234"),
    "a name twice": file_of(b'{"x":' + json.dumps(entry()).encode() + b',"x":'
                            + json.dumps(entry()).encode() + b"}", b"1234"),
    "a bad structure": file_of({"__metadata__": {"kiln.structure": '{"tensor":"y"}'},
                                "x": entry()}, b"1234"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_an_error(tmp_path, name):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(DAMAGED[name])
    with pytest.raises(kiln.DataLoss, match=r"bad\.safetensors"):
        kiln.load(path)


def test_an_unknown_dtype_is_named(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(file_of({"x": entry(dtype="F4")}, b"1234"))
    with pytest.raises(kiln.InvalidArgument, match="F4"):
        kiln.load(tmp_path / "x.safetensors")


def test_a_file_is_mapped_rather_than_read(tmp_path):
    path = tmp_path / "large.safetensors"
    with open(path, "wb") as file:
        file.write(file_of({"x": entry(shape=(1 << 30,), end=4 << 30)}))
        file.truncate(file.tell() + (4 << 30))
    assert os.stat(path).st_blocks * 512 < 1 << 20  # sparse
    loaded = kiln.load(path)
    assert loaded["x"].shape == (1 << 30,)
