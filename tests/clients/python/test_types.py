"""The client's type hints pass strict checking, and so does code that uses them."""

import pathlib

import pytest

CLIENT = pathlib.Path(__file__).resolve().parents[3] / "clients" / "python"


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Runs mypy with the client's settings; returns its output."""
    from mypy import api

    monkeypatch.chdir(CLIENT)
    monkeypatch.setenv("MYPYPATH", str(CLIENT))

    def run(*arguments):
        return api.run([f"--cache-dir={tmp_path}", *arguments])

    return run


def test_the_client_and_a_users_program(check, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import kiln\n"
        "x = kiln.zeros(2, 3)\n"
        "shape: tuple[int, ...] = (x @ x.T)[0].shape\n"
        "total: kiln.Tensor = kiln.sum(x, axis=0) + 2 * x.exp().mean(-1, keepdim=True)\n"
        "wrong: int = x.sum()\n"
    )
    output, _, status = check("--package=kiln")
    assert status == 0, output
    output, _, _ = check(str(program))
    errors = [line for line in output.splitlines() if ": error:" in line]
    assert len(errors) == 1 and "program.py:5" in errors[0], output
