"""Tests that the checks of a bundle find what target machines may lack, and that today's programs pass them."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from kilnd_process import build_folder  # noqa: E402


def script(name: str):
    """Loads a script of this folder as a module."""
    loader = importlib.machinery.SourceFileLoader(f"portable_{name}", str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


inspect, licences, weaken = script("inspect"), script("licences"), script("weaken")
SYSTEM_PROGRAM = pathlib.Path("/usr/bin/python3").resolve()  # it needs libz


@pytest.fixture
def bundle(tmp_path):
    """Makes a bundle with one of the system's programs, without its libraries."""
    for folder in ("bin", "lib/second", "licences"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(SYSTEM_PROGRAM, tmp_path / "bin/program")
    (tmp_path / "licences/index.txt").write_text("")
    return tmp_path


def test_the_programs_need_nothing_that_is_too_new():
    for path in (build_folder() / "server/kilnd", build_folder() / "clients/cli/kiln"):
        too_new = set(inspect.too_new(inspect.needs(path)))
        wanted = {name for name, version in inspect.symbols(path) if version.removeprefix("*UND* ") in too_new}
        assert wanted <= {"arc4random"}, "deploy/portable/arc4random.c is all that a bundle's programs bring of newer C libraries"


def test_each_library_has_a_licence():
    libraries = licences.shared_libraries([str(build_folder() / "server/kilnd")])
    packages = licences.owners(libraries)
    assert len(libraries) > 20 and set(packages) == libraries
    assert [one for one in set(packages.values()) if not (licences.DOCUMENTS / one / "copyright").is_file()] == []
    with pytest.raises(SystemExit, match="of no Debian package: /nowhere/libnone.so"):
        licences.owners(libraries | {"/nowhere/libnone.so"})


def test_a_library_that_is_not_packed_is_found(bundle):
    wrong = inspect.complaints(bundle)
    assert "bin/program needs libz.so.1, which is not in the bundle" in wrong
    assert "program does not look into lib" in wrong
    shutil.copy("/lib/x86_64-linux-gnu/libz.so.1", bundle / "lib")
    wrong = inspect.complaints(bundle)
    assert not any("needs libz.so.1" in line for line in wrong)
    assert "there is no licence of libz.so.1" in wrong


def test_a_library_that_only_a_library_asks_for_is_found(bundle):
    shutil.copy("/lib/x86_64-linux-gnu/libz.so.1", bundle / "lib/libexpat.so.1")
    shutil.copy("/lib/x86_64-linux-gnu/libssl.so.3", bundle / "lib/libz.so.1")  # which needs libcrypto
    shutil.copy("/lib/x86_64-linux-gnu/libcrypto.so.3", bundle / "lib")
    assert "program needs libcrypto.so.3 by way of another library, and does not say so" in inspect.complaints(bundle)


def test_a_weak_version_is_no_need_if_the_program_brings_its_symbols(bundle):
    library = bundle / "lib/second/libstdc++.so.6"
    data = bytearray(pathlib.Path("/lib/x86_64-linux-gnu/libstdc++.so.6").read_bytes())
    library.write_bytes(data)
    assert "lib/second/libstdc++.so.6 needs GLIBC_2.36" in inspect.complaints(bundle)
    assert weaken.weaken(data, "GLIBC_2.99") == 0
    assert weaken.weaken(data, "GLIBC_2.36") == 1
    library.write_bytes(data)
    inspect.needs.cache_clear()
    wrong = inspect.complaints(bundle)
    assert "lib/second/libstdc++.so.6 needs GLIBC_2.36" not in wrong
    assert "lib/second/libstdc++.so.6 needs arc4random, which a program does not bring" in wrong
