"""A daemon's state over its life: backups, restored on another machine, tampered audit logs, and folders of earlier versions."""

import contextlib
import hmac
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from eventually import GIVE_UP_SECONDS, eventually
from kilnd_process import NO_PROBES, ROOT, Kilnd, build_folder, program

sys.path.insert(0, str(ROOT / "tests/formats"))

import decoder  # noqa: E402

KILN = build_folder() / "clients/cli/kiln"
EXAMPLES = ROOT / "tests/formats/examples"
# Has a tensor; adds it to itself when it is told to, and prints the sum.
CLIENT = """
import sys, kiln
x = (kiln.ones(4) * 3).realize()
kiln.default_connection().synchronize()
print("ready", flush=True)
sys.stdin.readline()
print(float((x + x).sum().numpy()), flush=True)
"""


def kilnd(*arguments: object, check: bool = True) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([program("server/kilnd"), *map(str, arguments)], capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0 or not check, done
    return done


def kiln(daemon: Kilnd, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([KILN, *arguments], env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0 or not check, done
    return done


def folders(folder: pathlib.Path) -> list[str]:
    return [f"--state_dir={folder}/state", f"--cache_dir={folder}/cache"]


@contextlib.contextmanager
def client(daemon: Kilnd) -> "Iterator[subprocess.Popen[str]]":
    """A session with a tensor."""
    process = subprocess.Popen([sys.executable, "-c", CLIENT], env=daemon.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n", process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_backup_of_a_running_daemon_is_restored_elsewhere(tmp_path):
    archive, key = tmp_path / "backup", tmp_path / "backup.key"
    backup = [f"--export_state={archive}", f"--state_key_file={key}"]
    with Kilnd(config=NO_PROBES) as first:
        token = kiln(first, "user", "add", "ann", "--role", "admin").stdout.strip()
        kiln(first, "quota", "set", "ann", "sessions=7")
        said = kilnd(*backup, *folders(first.folder)).stdout
        assert "saved users" in said and "saved audit.jsonl," in said
        assert token.encode() not in archive.read_bytes()
        assert archive.stat().st_mode & 0o777 == key.stat().st_mode & 0o777 == 0o600
        again = kilnd(*backup, *folders(first.folder), check=False)
        assert again.returncode == 1 and "--overwrite" in again.stderr
    other = tmp_path / "other"
    restore = [f"--import_state={archive}", f"--state_key_file={key}", *folders(other)]
    assert "restored users" in kilnd(*restore).stdout
    assert kilnd(*restore, check=False).returncode == 1
    kilnd(*restore, "--overwrite")
    with Kilnd(folder=str(other), config=NO_PROBES) as second:
        login = ["--address", second.tcp_address, "--token", token]
        assert "ann" in kiln(second, "user", "list", *login).stdout
        quotas = json.loads(kiln(second, "quota", "--json", *login).stdout)["users"]
        (sessions,) = [row for user in quotas if user["user"] == "ann" for row in user["resources"] if row["resource"] == "sessions"]
        assert sessions["limit"] == 7
        events = [json.loads(line)["action"] for line in kiln(second, "audit", "--json", *login).stdout.splitlines()]
        assert events[:2] == ["add_user", "set_quota"] and "import_state" in events
        assert "events are as they were written" in kiln(second, "audit", "verify", *login).stdout
        assert kilnd(*restore, "--overwrite", check=False).returncode == 1  # a daemon uses the folder


def test_sessions_move_to_another_machine(tmp_path):
    archive, key = tmp_path / "backup", tmp_path / "backup.key"
    with Kilnd(config=NO_PROBES) as first:
        with client(first) as process:
            assert first.stop(signal.SIGTERM) == 0
            kilnd(f"--export_state={archive}", f"--state_key_file={key}", "--with_sessions", *folders(first.folder))
            shutil.rmtree(first.folder / "state")
            kilnd(f"--import_state={archive}", f"--state_key_file={key}", "--overwrite", *folders(first.folder))
            first.start()
            assert process.communicate("go\n", timeout=GIVE_UP_SECONDS)[0] == "24.0\n"


def test_a_tampered_audit_log_is_named_by_everyone(tmp_path):
    with Kilnd(config=NO_PROBES) as daemon:
        for name in ("ann", "bob", "eve"):
            kiln(daemon, "user", "add", name)
        log = daemon.folder / "state/audit.jsonl"
        verify = ["--verify_audit", *folders(daemon.folder)]
        assert kilnd(*verify).stdout.startswith("3 events are as they were written\nthe last one is event 3 with the seal ")
        lines = log.read_text().splitlines(keepends=True)
        plants = {
            "1: this line does not match its seal": [lines[0].replace("ann", "amy"), *lines[1:]],
            "2: this line is event 3, but event 2 comes first": [lines[0], lines[2]],
            "2: this line begins another file": [lines[0], lines[0], *lines[1:]],
            "3: this line is missing: the log ends with event 2": lines[:2],
        }
        for what, planted in plants.items():
            log.write_text("".join(planted))
            for said in (kiln(daemon, "audit", "verify", check=False), kilnd(*verify, check=False)):
                assert said.returncode == 1 and f"audit.jsonl:{what}" in said.stderr, said
        log.write_text("".join(lines))
        kiln(daemon, "audit", "verify")
        daemon.stop()
        log.write_text("".join(lines[:2]))
        daemon.start()
        assert "event=audit_tampered" in daemon.log.read_text()
        assert "event 4, but event 3 comes first" in kiln(daemon, "audit", "verify", check=False).stderr
        assert "AUDIT_TAMPERED" in kiln(daemon, "audit").stdout


class Reader(decoder.Reader):
    """Reads graphs as text, too, which are bytes."""

    def text(self) -> str:
        return self.take(self.number()).decode(errors="replace")


def as_version_4(data: bytes, key: bytes) -> bytes:
    """Returns a session's checkpoint as the version before wrote it: without the settings of its programs' kernels."""
    size = int.from_bytes(data[16:24], "little")
    description = data[24 : 24 + size]
    settings = decoder.checkpoint_description(Reader(description))["origin_settings"]
    left = description[: size - sum(bytes_of(number) + bytes_of(int(live)) for number, live in settings)]
    head = b"kilnkeep" + (4).to_bytes(4, "little") + bytes(4) + len(left).to_bytes(8, "little") + left
    tag = hmac.digest(key, head, "sha256")
    content = data[24 + size + 32 : -32]
    return head + tag + content + hmac.digest(key, tag + content, "sha256")


def bytes_of(number: int) -> int:
    """Returns how many bytes a Number takes."""
    return max(1, -(-number.bit_length() // 7))


def test_a_state_folder_of_an_earlier_version_opens():
    """Users and tokens of version 2, an audit log without seals, a checkpoint of version 4, settings of version 1."""
    with Kilnd(config=NO_PROBES) as daemon:
        state = daemon.folder / "state"
        token = kiln(daemon, "user", "add", "ann", "--role", "admin").stdout.strip()
        environment = dict(daemon.environment(), KILN_TOKEN=token)
        with client(daemon) as process:
            daemon.stop(signal.SIGTERM)
            name, role, _, created, revoked, tokens = (state / "users").read_text().splitlines()[1].split(" ")
            token_id, _, _, _, digest = tokens.split(";", 4)
            (state / "users").write_text(f"kiln users 2\n{name} {role} {token_id} {created} {revoked} {digest}\nend of 1\n")
            event = json.loads((state / "audit.jsonl").read_text())
            del event["previous"], event["tag"]
            (state / "audit.jsonl").write_text(json.dumps(event, separators=(",", ":")) + "\n")
            for made_since in ("audit_key", "audit.jsonl.head"):
                (state / made_since).unlink()
            key = (state / "sessions/sessions.key").read_bytes()
            for session in (state / "sessions").glob("*.session"):
                session.write_bytes(as_version_4(session.read_bytes(), key))
            shutil.copy(EXAMPLES / "settings.1.sqlite", daemon.folder / "cache/settings.sqlite")
            daemon.start()
            assert process.communicate("go\n", timeout=GIVE_UP_SECONDS)[0] == "24.0\n"
        done = subprocess.run([KILN, "user", "list", "--address", daemon.tcp_address], env=environment, capture_output=True, text=True)
        assert re.search(r"^ann +admin +" + token_id, done.stdout, re.MULTILINE), done
        assert "event=audit_tampered" not in daemon.log.read_text()
        kiln(daemon, "user", "add", "bob")
        said = kiln(daemon, "audit", "verify").stdout
        assert said.startswith("1 events are as they were written; 1 before them, of a version without seals, are not sealed\n"), said


@pytest.mark.parametrize("name, text", [("users", "kiln users 9\nend of 0\n"), ("quotas", "kiln quotas 9\nend of 0\n")])
def test_a_state_folder_of_a_later_version_is_refused(tmp_path, name, text):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / name).write_text(text)
    done = kilnd("--devices=cpu", "--metrics_listen=none", f"--listen=unix:{tmp_path}/s", *folders(tmp_path), check=False)
    assert done.returncode == 1
    assert f'was written by a newer version of Kiln: it is \\"{text.splitlines()[0]}\\"' in done.stderr
    assert (state / name).read_text() == text


def test_files_that_others_may_read_are_warned_of(tmp_path):
    with Kilnd(config=NO_PROBES) as daemon:
        (daemon.folder / "state/users").chmod(0o644)
        before = len(daemon.log.read_text())
        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: "event=reloaded" in daemon.log.read_text()[before:])
        assert "event=readable_by_others" in daemon.log.read_text()[before:]


def test_users_that_another_program_wrote_are_read_at_sighup(tmp_path):
    with Kilnd(config=NO_PROBES) as daemon:
        kiln(daemon, "user", "add", "ann", "--role", "admin")
        users = daemon.folder / "state/users"
        before = users.read_text()
        kiln(daemon, "user", "add", "bob")

        def hang_up() -> str:
            """Reloads; returns what the log then says."""
            end = len(daemon.log.read_text())
            daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: "event=reloaded" in daemon.log.read_text()[end:])
            return daemon.log.read_text()[end:]

        temporary = users.with_name("users.temporary")
        temporary.write_text(before)
        temporary.chmod(0o600)
        os.replace(temporary, users)
        assert "reload_failed" not in hang_up()
        assert "bob" not in kiln(daemon, "user", "list").stdout
        users.write_text("garbage")
        assert "event=reload_failed file=users" in hang_up()
        assert "ann" in kiln(daemon, "user", "list").stdout
