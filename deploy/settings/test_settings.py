"""The tables of settings that are installed with the daemon, and the script that makes them."""

import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/formats")]

import decoder  # noqa: E402
import kiln  # noqa: E402
from kilnd_process import NO_PROBES, Kilnd, build_folder, program  # noqa: E402


@pytest.fixture(scope="module")
def generate():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("generate_settings", str(HERE / "generate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def entry(kernel: str, before: float, now: float, setting: str = "setting 1\n") -> str:
    lines = setting.count("\n")
    return (f"hardware here\nversion 1\nseconds {before} {now} 0\nmeasured 7\nwidth 4\nkernel {kernel.count(chr(10))}\n{kernel}"
            f"setting {lines}\n{setting}")


def table(*entries: str) -> str:
    return f"kiln settings 1\n{''.join(entries)}end of {len(entries)}\n"


def test_what_gains_is_kept(generate):
    fast, slow, none = entry("hardware of a\nb\n", 2, 1), entry("c\n", 1.04, 1), entry("d\n", 2, 1, "")
    text = table(fast, slow, none)
    assert generate.entries_of(text) == [fast, slow, none]
    assert generate.gaining(text, 1.05) == table(fast)
    assert generate.gaining(text, 1.01) == table(fast, slow)
    assert generate.gaining(table(), 1.05) == table()
    with pytest.raises(AssertionError, match="not a table"):
        generate.entries_of(text.replace("end of 3", "end of 2"))


def test_the_shipped_tables_can_be_read(generate):
    tables = list(HERE.glob("*.settings"))
    assert tables
    for path in tables:
        settings = decoder.settings_text(path.read_bytes())
        assert len(settings) == len(generate.entries_of(path.read_text())) <= 2000
        assert all(setting["setting"] and setting["seconds"][1] < setting["seconds"][0] for setting in settings)
        assert not any(b";user=" in setting["hardware"] for setting in settings)


def explained(daemon: Kilnd, tune: bool = False) -> str:
    """Returns what `kiln explain` prints of the only program, after it has run."""
    connection = kiln.connect(daemon.address)
    double = kiln.jit(lambda x: x * 2 + 1)
    double(kiln.ones(4096)).numpy()
    (info,) = double.programs()
    command = [program("clients/cli/kiln"), "explain", info.digest]
    text = subprocess.run(command, env=daemon.environment(), capture_output=True, text=True, check=True).stdout
    if tune:
        print(kiln.tune(double, seconds=600, width=1))
    connection.close()
    return text


def test_an_installed_table_is_used_until_something_is_stored(generate, tmp_path, monkeypatch):
    with Kilnd(threads=1, config=NO_PROBES) as daemon:
        assert "form=scalar" not in explained(daemon, tune=True)
        exported = tmp_path / "exported"
        subprocess.run([program("clients/cli/kiln"), "tune", "export", exported], env=daemon.environment(), check=True)
    # The search may have found nothing faster, so only the kernel and the hardware are taken. The other entry is of choices
    # about the program.
    (tuned,) = [entry for entry in generate.entries_of(exported.read_text()) if "\ngraph " not in entry]
    start = tuned[:re.search(r"^setting \d+\n", tuned, re.MULTILINE).start()]
    shipped = f"{start}setting 2\nsetting 1\nstage 0 form=scalar\n"
    # Laid out as an installation, in which kilnd finds the table beside its folder.
    installed = tmp_path / "installed"
    for path in "server/kilnd", "clients/cli/kiln":
        (installed / path).parent.mkdir(parents=True)
        try:
            os.link(build_folder() / path, installed / path)
        except OSError:  # another file system
            (installed / path).write_bytes((build_folder() / path).read_bytes())
            (installed / path).chmod(0o755)
    (installed / "share/kiln/settings").mkdir(parents=True)
    (installed / "share/kiln/settings/table.settings").write_text(table(shipped))
    (installed / "share/kiln/settings/wrong.settings").write_text("kiln settings 0\n")
    monkeypatch.setenv("KILN_BUILD", str(installed))
    with Kilnd(threads=1, config=NO_PROBES) as daemon:
        log = daemon.log.read_text()
        assert re.search(r"event=shipped_settings .*used=1 of=1", log)
        assert re.search(r"event=shipped_settings_refused .*wrong\.settings", log)
        assert "form=scalar" in explained(daemon)
        # Stored: nothing is faster than the heuristic's schedule.
        subprocess.run([program("clients/cli/kiln"), "tune", "import", "-"], env=daemon.environment(), check=True, text=True,
                       input=table(f"{start}setting 0\n"))
        assert "form=scalar" not in explained(daemon)
