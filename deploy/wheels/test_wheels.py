"""Builds the wheels from the built programs, and trains with them in an environment of their own."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "guides")]

from blocks import twenty_lines  # noqa: E402
from kilnd_process import build_folder  # noqa: E402
from once import once  # noqa: E402


def run(*command, **options):
    """Returns the output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The folder of the wheels."""
    once(tmp_path_factory, "wheels",
         lambda _: run(ROOT / "deploy/wheels/build", "--no-build", env={**os.environ, "KILN_BUILD": str(build_folder())}))
    return ROOT / "build" / "wheels"


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """The `bin` folder of a virtual environment in which both are installed, the daemon by the client's extra."""
    def install(folder):
        run("/usr/bin/python3", "-m", "venv", folder)
        run(folder / "bin/pip", "install", "--disable-pip-version-check", "--find-links", wheels, "kiln-client[daemon]")

    return once(tmp_path_factory, "installed", install) / "bin"


def test_the_daemons_wheel_fits_machines_with_glibc_2_35(wheels):
    (wheel,) = wheels.glob("kilnd-*.whl")
    shown = run(ROOT / "build/wheel_tools/bin/python", "-m", "auditwheel", "show", wheel)
    assert '"manylinux_2_35_x86_64"' in " ".join(shown.split()), shown


def test_the_wheels_have_their_licences(wheels):
    for wheel in wheels.glob("*.whl"):
        names = run(sys.executable, "-m", "zipfile", "-l", wheel)
        assert "LICENSE" in names
        assert ("llvm-22-dev" in names) == wheel.name.startswith("kilnd-")
        assert ("kilnd/share/kiln/settings/processors.settings" in names) == wheel.name.startswith("kilnd-")


def test_both_have_one_version(installed):
    daemon = run(installed / "kilnd", "--version").split()[1]
    assert run(installed / "python", "-m", "kiln", "version").split() == ["kiln", daemon]
    assert run(installed / "python", "-m", "kiln", "serve", "--version").split()[1] == daemon


def test_a_network_is_trained_with_what_is_installed(installed, tmp_path):
    (tmp_path / "kiln").mkdir(mode=0o700)
    socket = f"unix:{tmp_path}/kiln/kilnd.sock"
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "KILN_ADDRESS": socket}
    with subprocess.Popen([installed / "kilnd", f"--listen={socket}", "--metrics_listen=none", "--devices=cpu",
                           "--idle_tuning=false"],
                          env=bare, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            assert any("event=serving" in line for line in daemon.stderr)
            # Isolated from the sources: the package must come from the wheel.
            loss = run(installed / "python", "-I", "-c", twenty_lines(), env=bare, cwd=tmp_path)
            assert float(loss.split()[1]) < 0.1, loss
            assert "cpu:0" in run(installed / "kiln", "devices", env=bare)
        finally:
            daemon.terminate()
            daemon.communicate()
    assert daemon.returncode == 0
