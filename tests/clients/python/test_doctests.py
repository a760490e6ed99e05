"""The examples in docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import kiln

MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(kiln.__path__, "kiln.") if "_proto" not in name)


@pytest.mark.parametrize("name", ["kiln", *MODULES])
def test_examples(connection, name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    for test in doctest.DocTestFinder().find(module, name, globs={"kiln": kiln, "np": np}):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
