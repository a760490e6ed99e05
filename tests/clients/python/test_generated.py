"""What is generated is fresh, and the rules agree with the daemon's."""

import json
import pathlib
import shutil
import subprocess

import pytest

import kiln
from kiln import _dtypes, _node, _rules
from kiln._ops import OPS

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


def test_dtypes_are_the_wires():
    from kiln._proto.kiln.v1 import graph_pb2

    for dtype in _dtypes.ALL:
        assert graph_pb2.DType.Value(f"DTYPE_{dtype.name.upper()}") == dtype.code


def test_every_rule_and_class_in_the_table_is_known():
    for op in OPS:
        assert op.shape_rule in _rules.SHAPE_RULES
        assert op.dtype_rule in (
            "attribute", "same", "second", "promote", "promote_float", *_rules._FIXED_DTYPES)
        assert _dtypes.members(op.operand_class) and _dtypes.members(op.special_class)


def test_every_op_that_the_client_names_is_in_the_table():
    import re

    used = set()
    for path in (CLIENT / "kiln").rglob("*.py"):
        text = path.read_text()
        used |= set(re.findall(r'(?:_op|_reflected|apply|make|_reduce|_place)\(\s*"(\w+)"', text))
    assert used <= set(_node.TABLE) and len(used) > 50


def _cases():
    path = ROOT / "tests" / "golden" / "shape_cases.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_shapes_and_dtypes_are_the_daemons():
    cases = _cases()
    assert cases, "tests/golden/shape_cases.json is missing"
    rows = cases["cases"] if isinstance(cases, dict) else cases
    for case in rows:
        _check(case)
    assert len(rows) > 50


def _check(case):
    op = _node.TABLE[case["op"]]
    operands = case["operands"]
    attributes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in case.get("attributes", {}).items()
    }
    declared = _dtypes.BY_NAME[case["declared"]] if case.get("declared") else None

    def infer():
        _rules.check_operand_count(op, len(operands))
        complete = _rules.complete_attributes(op, attributes)
        shape = _rules.infer_shape(op, [tuple(o["shape"]) for o in operands], complete)
        dtypes = [_dtypes.BY_NAME[o["dtype"]] for o in operands]
        return shape, _rules.infer_dtype(op, dtypes, declared)

    if case.get("error"):
        with pytest.raises(kiln.InvalidArgument):
            infer()
        return
    shape, dtype = infer()
    assert (list(shape), dtype.name) == (case["shape"], case["dtype"]), case


def test_the_package_says_that_it_is_typed():
    assert (pathlib.Path(kiln.__file__).parent / "py.typed").exists()
