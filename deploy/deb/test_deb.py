"""Packs the built programs as a Debian package and looks at it; nothing is installed."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from kilnd_process import build_folder  # noqa: E402
from once import once  # noqa: E402


def run(*command, **options):
    """Returns the output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package, compressed less than a published one, which takes a minute."""
    if not shutil.which("help2man") or not shutil.which("lintian"):
        pytest.skip("help2man and lintian are not installed: deploy/dependencies --test")
    def pack(folder):
        run("ninja", "-C", build_folder(), "documents")
        run("cpack", "--config", build_folder() / "CPackConfig.cmake", "-B", folder, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip",
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})

    (found,) = once(tmp_path_factory, "deb", pack).glob("*.deb")
    return found


@pytest.fixture(scope="module")
def content(package, tmp_path_factory):
    """A folder with the files of the package."""
    folder = tmp_path_factory.mktemp("content")
    run("dpkg-deb", "-x", package, folder)
    return folder


def test_the_package_has_exactly_these_files(content):
    files = sorted(f"/{path.relative_to(content)}" for path in content.rglob("*") if path.is_file())
    assert files == (HERE / "files.txt").read_text().split()


def test_debians_checker_finds_no_error(package):
    found = subprocess.run(["lintian", "--allow-root", str(package)], capture_output=True, text=True)
    assert "E: " not in found.stdout, found.stdout


def test_the_package_has_the_version_and_what_the_programs_need(package, content):
    fields = run("dpkg-deb", "-f", package)
    version = run(content / "usr/bin/kilnd", "--version").split()[1]
    assert f"Version: {version}-1\n" in fields
    assert re.search(r"^Depends: .*libgrpc\+\+1\.51.*libsqlite3-0", fields, re.M)


def test_the_configuration_is_kept_by_an_upgrade_and_has_only_defaults(package, content, tmp_path):
    assert run("dpkg-deb", "-I", package, "conffiles") == "/etc/kiln/kilnd.toml\n"
    lines = (content / "etc/kiln/kilnd.toml").read_text().splitlines()
    assert [line for line in lines if not line.startswith(("#", "[")) and line] == []


def test_the_unit_names_what_the_package_installs_and_is_restricted(content):
    unit = content / "usr/lib/systemd/system/kilnd.service"
    started = re.search(r"^ExecStart=(\S+) --config=(\S+)$", unit.read_text(), re.M)
    assert (content / started[1][1:]).is_file() and (content / started[2][1:]).is_file()
    assert "u kiln " in (content / "usr/lib/sysusers.d/kiln.conf").read_text()
    # At most 4 of 10, systemd's measure of what a service may do.
    run("systemd-analyze", "security", "--offline=true", "--threshold=40", unit)


def test_another_prefix_has_its_own_configuration(tmp_path):
    run("cmake", "--install", build_folder(), "--prefix", tmp_path / "kiln")
    unit = (tmp_path / "kiln/lib/systemd/system/kilnd.service").read_text()
    assert f"ExecStart={tmp_path}/kiln/bin/kilnd --config={tmp_path}/kiln/etc/kiln/kilnd.toml\n" in unit
    assert (tmp_path / "kiln/etc/kiln/kilnd.toml").is_file()
    assert run(tmp_path / "kiln/bin/kiln", "--version") == f"kiln {run(tmp_path / 'kiln/bin/kilnd', '--version').split()[1]}\n"


def test_bash_completes_with_the_installed_file(content):
    script = (f"source {content}/usr/share/bash-completion/completions/kiln; COMP_WORDS=(kiln us); COMP_CWORD=1; _kiln kiln us kiln;"
              ' echo "${COMPREPLY[@]}"')
    assert run("bash", "-c", script) == "user\n"
