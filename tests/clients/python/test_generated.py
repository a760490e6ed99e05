"""Generated files are up to date, and the rules agree with the daemon's."""

import copy
import json
import pathlib
import pickle
import shutil
import subprocess

import ml_dtypes
import pytest

import kiln
from kiln import _rules
from kiln._basics import dtypes as _dtypes
from kiln._basics.dtype_table import FORMATS
from kiln._graph import node
from kiln._ops.table import OPS
from op_table.row import numpy_dtype

ROOT = pathlib.Path(__file__).resolve().parents[3]
CLIENT = ROOT / "clients" / "python"


def test_protobuf_modules_are_fresh(tmp_path):
    assert shutil.which("protoc"), "protoc is missing; install protobuf-compiler"
    subprocess.run([str(CLIENT / "generate"), str(tmp_path)], check=True)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.py"))
    have = CLIENT / "kiln" / "_proto"
    assert made == sorted(path.relative_to(have) for path in have.rglob("*.py"))
    for path in made:
        assert (tmp_path / path).read_text() == (have / path).read_text(), (
            f"{path} is not what the protos give; run clients/python/generate")


def test_namespaces_are_fresh(tmp_path):
    subprocess.run([str(CLIENT / "generate_names"), str(tmp_path)], check=True)
    for path in tmp_path.rglob("*.py"):
        name = path.relative_to(tmp_path)
        assert path.read_text() == (CLIENT / "kiln" / name).read_text(), (
            f"kiln/{name} is not what names.txt says; run clients/python/generate_names")


def test_dtypes_are_the_wires():
    from kiln._proto.kiln.v1 import graph_pb2

    for dtype in _dtypes.ALL:
        assert graph_pb2.DType.Value(f"DTYPE_{dtype.name.upper()}") == dtype.code


def test_the_kind_of_a_dtype_follows_from_its_name():
    for dtype in _dtypes.ALL:
        assert dtype.is_integer == (dtype in _dtypes.members("integer"))
        assert dtype.is_float == (dtype in FORMATS)
        assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_float_formats_are_those_of_ml_dtypes(dtype):
    ours, theirs = kiln.finfo(dtype), ml_dtypes.finfo(numpy_dtype(dtype.name))
    assert (ours.bits, ours.eps, ours.max) == (theirs.bits, float(theirs.eps), float(theirs.max))
    assert ours.smallest_normal == float(theirs.smallest_normal)


def test_every_rule_and_class_in_the_table_is_known():
    for op in OPS:
        assert op.shape_rule in _rules.SHAPE_RULES
        assert op.dtype_rule in (
            "attribute", "same", "second", "promote", "promote_float", *_rules.FIXED_DTYPES)
        assert _dtypes.members(op.operand_class) and _dtypes.members(op.special_class)
        assert set(op.constraints) <= set(_rules.CONSTRAINTS)


def test_every_op_that_the_client_names_is_in_the_table():
    import re

    used = set()
    for path in (CLIENT / "kiln").rglob("*.py"):
        text = path.read_text()
        used |= set(re.findall(r'(?:_op|_reflected|apply|make|_reduce|_place)\(\s*"(\w+)"', text))
    assert used <= set(node.TABLE) and len(used) > 50


def _cases():
    return json.loads((ROOT / "tests" / "golden" / "shape_cases.json").read_text())


def _infer_shape(case):
    op = node.TABLE[case["op"]]
    _rules.check_operand_count(op, len(case["operands"]))
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in case["attributes"].items()
    }
    complete = _rules.complete_attributes(op, given)
    return _rules.infer_shape(op, [tuple(shape) for shape in case["operands"]], complete)


def _infer_dtype(case):
    op = node.TABLE[case["op"]]
    declared = _dtypes.BY_NAME[case["declared"]] if case["declared"] else None
    _rules.check_operand_count(op, len(case["operands"]))
    return _rules.infer_dtype(op, [_dtypes.BY_NAME[name] for name in case["operands"]], declared)


@pytest.mark.parametrize("case", _cases()["shapes"], ids=str)
def test_shapes_are_the_daemons(case):
    if case["result"] is None:
        with pytest.raises(kiln.InvalidArgument):
            _infer_shape(case)
    else:
        assert list(_infer_shape(case)) == case["result"]


@pytest.mark.parametrize("case", _cases()["dtypes"], ids=str)
def test_dtypes_are_the_daemons(case):
    if case["result"] is None:
        with pytest.raises(kiln.InvalidArgument):
            _infer_dtype(case)
    else:
        assert _infer_dtype(case).name == case["result"]


@pytest.mark.parametrize("case", _cases()["constraints"], ids=str)
def test_constraints_are_the_daemons(case):
    op = node.TABLE[case["op"]]
    dtypes = [_dtypes.BY_NAME[name] for name in case["dtypes"]]
    declared = _dtypes.BY_NAME[case["declared"]] if case["declared"] else None
    operands = tuple(node.placeholder(dtype, tuple(shape))
                     for dtype, shape in zip(dtypes, case["operands"]))
    given = tuple((name, tuple(value) if isinstance(value, list) else value)
                  for name, value in case["attributes"].items())
    if case["holds"]:
        node.make(op.name, operands, given, declared)
    else:
        with pytest.raises(kiln.InvalidArgument):
            node.make(op.name, operands, given, declared)


def test_the_package_says_that_it_is_typed():
    assert (pathlib.Path(kiln.__file__).parent / "py.typed").exists()
