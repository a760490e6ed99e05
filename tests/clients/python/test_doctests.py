"""The examples in docstrings run and print the results shown."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import kiln

MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(kiln.__path__, "kiln.") if "_proto" not in name)


class Finder(doctest.DocTestFinder):
    """Also finds decorated functions."""

    def _from_module(self, module, object):
        return getattr(object, "__module__", None) == module.__name__


@pytest.mark.parametrize("name", ["kiln", *MODULES])
def test_examples(connection, kilnd, monkeypatch, name):
    monkeypatch.setenv("KILN_ADDRESS", kilnd.address)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    names = {"kiln": kiln, "np": np, "F": kiln.functional,
             "torch": importlib.import_module("kiln.torch")}
    for test in Finder().find(module, name, globs=names):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", dir(kiln.ops))
def test_the_example_of_an_op(name):
    function = getattr(kiln.ops, name)
    assert ">>> kiln.ops." in function.__doc__, f"{name} needs a case in compiler/ops/rules/shape_cases.cc"
    report = []
    test = doctest.DocTestParser().get_doctest(
        function.__doc__, {"kiln": kiln}, name, __file__, None)
    runner = doctest.DocTestRunner()
    runner.run(test, out=report.append)
    assert not runner.failures and runner.tries, "".join(report)


def test_a_function_of_an_op_says_what_it_takes():
    assert str(inspect.signature(kiln.ops.layer_norm)).startswith(
        "(x: kiln.tensor.Tensor, weight: Optional[kiln.tensor.Tensor] = None, bias:")
    with pytest.raises(AttributeError, match="unknown op 'softmacks'"):
        kiln.ops.softmacks  # noqa: B018
    with pytest.raises(kiln.InvalidArgument, match='no attribute "axes"'):
        kiln.ops.softmax(kiln.ones(3), axes=0)
