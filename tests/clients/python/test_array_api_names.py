"""The names and signatures of the Python array API standard 2024.12."""

import inspect

import array_api_strict as strict
import pytest

import kiln

# Complex numbers and the Fourier extension are out of scope; the others are specific to
# array-api-strict.
NOT_OURS = {
    "ArrayAPIStrictFlags", "Device", "__version__", "complex128", "complex64", "conj", "fft",
    "get_array_api_strict_flags", "imag", "real", "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}  # fmt: skip
NAMES = sorted(set(strict.__all__) - NOT_OURS)
LINEAR = sorted(strict.linalg.__all__)
# Decompositions that need iterations.
LINEAR_NOT_OURS = {"eig", "eigh", "eigvals", "eigvalsh", "matrix_rank", "pinv", "svd", "svdvals"}


def parameters(function):
    return list(inspect.signature(function).parameters.values())


def takes(mine, theirs, place):
    """Returns whether a parameter can be given as in the standard."""
    by_name = {parameter.name: parameter for parameter in mine}
    positional = [p for p in mine if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if theirs.kind == theirs.VAR_POSITIONAL:
        return any(p.kind == p.VAR_POSITIONAL for p in mine)
    found = by_name.get(theirs.name)
    if theirs.kind in (theirs.POSITIONAL_ONLY, theirs.POSITIONAL_OR_KEYWORD):
        if place >= len(positional):
            return False
        if theirs.kind == theirs.POSITIONAL_ONLY:
            found = positional[place]
    if found is None or (theirs.kind != theirs.POSITIONAL_ONLY
                         and found.kind == found.POSITIONAL_ONLY):
        return False
    if theirs.default is theirs.empty:
        return True
    plain = theirs.default is None or isinstance(theirs.default, (bool, int, float, str))
    return found.default is not found.empty and (not plain or found.default == theirs.default)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_standard_is_there(name):
    ours, theirs = getattr(kiln, name), getattr(strict, name)
    assert name in kiln.__all__ or name.startswith("__")
    if not inspect.isfunction(theirs):
        return
    for place, parameter in enumerate(parameters(theirs)):
        assert takes(parameters(ours), parameter, place), f"{name}{inspect.signature(ours)}"


@pytest.mark.parametrize("name", sorted(set(LINEAR) - LINEAR_NOT_OURS))
def test_every_name_of_the_linear_algebra_extension_is_there(name):
    for place, parameter in enumerate(parameters(getattr(strict.linalg, name))):
        assert takes(parameters(getattr(kiln.linalg, name)), parameter, place)


@pytest.mark.parametrize("name", [
    name for name in dir(strict.asarray(1.0))
    if name.startswith("__") and name != "__buffer__"])
def test_every_method_of_the_standard_is_there(name):
    assert hasattr(kiln.Tensor, name)
