"""The example files, which the C++ test beside this one compares with what the code writes, are as docs/formats says."""

import hashlib
import hmac
import json
import pathlib
import shutil
import sqlite3

import decoder

EXAMPLES = pathlib.Path(__file__).parent / "examples"
KEY = (EXAMPLES / "example.key").read_bytes()
SECOND = 10**9
ERROR = (5, "no tensor 9", [("kiln/handle", "9"), ("kiln/reason", "UNKNOWN_HANDLE")])
TWO_DEVICES = (["cpu:0", "cpu:1"], [("data", 2)], [[0], []])
GRAPH = "graph 1"


def example(name: str) -> bytes:
    return (EXAMPLES / name).read_bytes()


def test_key_has_32_bytes():
    assert len(KEY) == 32


def test_checkpoint():
    assert decoder.checkpoint(example("example.session"), KEY) == {
        "number": 3,
        "id": "secret id",
        "name": "s3",
        "client": ("python", "1.0", "ann's laptop", 7, True),
        "leases": (900 * SECOND, 60 * SECOND),
        "priority": 1,
        "opened": 1_700_000_000 * SECOND,
        "generation": 2,
        "parked": ("night", 8 * 3600 * SECOND, [("weights", 1)]),
        "user": "ann",
        "device": "cpu:0",
        "remaining": 300 * SECOND,
        "executed": 20,
        "runs": 11,
        "device_seconds": 0.5,
        "origins": [("graph 1", "step"), ("graph 2", "")],
        "values": [(0, 3, [2, 3]), (0, 6, [4, 1]), (1, ERROR), (2,), (2,), (0, 1, [])],
        "pending": [
            (15, 0, 0, [("n", -5)], [0, 2], [3], True),
            (16, 1, 1),
            (17, 2, 1),
            (18, 3),
            (19, 4, 3, 4, TWO_DEVICES),
        ],
        "answers": [(13, ERROR, 0, "", 0.0), (14, None, 6, "digest", 0.25)],
        "used_handles": [(1, 4), (9, 9)],
        "handles": [(1, 3), (2, 1), (4, 4)],
        "used_programs": [(1, 2)],
        "programs": [(1, 0), (2, ERROR)],
        "blobs": [("blob", 5)],
        "cancelled": [(21, 25)],
        "interval": 5 * SECOND,
        "log": 2,
        "goes_on": True,
        "updates": [[(1, 0)]],
        "places": ["", TWO_DEVICES, "cpu:1"],
        "origin_devices": [[], ["cpu:0", "cpu:1"]],
        "origin_settings": [(1_700_000_000_000_000, False), (0, True)],
        "bytes": [b"value 1 ....", b"v2..", b"1", b"blob."],
    }


OPERATIONS = [
    ("unknown",),
    ("define", 0, False, [], 1, "step", GRAPH),
    ("define", 0, False, [], 2, "broken", ERROR),
    ("define", 5, True, ["cpu:0", "cpu:1"], 3, "on two", GRAPH),
    ("run", 1, [1, 2], [3], [("n", -5)], True),
    ("write", 4, 6, [2, 2], ["blob"], b"data"),
    ("write", TWO_DEVICES, 5, 6, [2, 2], [], b"data"),
    ("move", 4, 6, "cpu:1"),
    ("read", 3),
    ("release", [1, 2], ["blob"]),
    ("release program", 1),
    ("barrier",),
    ("cancel", 7),
    ("park", "night", 8 * 3600 * SECOND, [("weights", 3)]),
    ("refused", ERROR, [8]),
]


def test_log():
    header, records, last = decoder.segment(example("example.1.journal"), KEY)
    assert header == {"version": 3, "id": "secret id", "number": 1, "boot": "boot id", "name": "", "follows": bytes(32)}
    assert records == [("executed", i + 1, i, 300, 3, *operation) for i, operation in enumerate(OPERATIONS)]
    header, records, _ = decoder.segment(example("example.2.journal"), KEY)
    assert header == {"version": 3, "id": "secret id", "number": 2, "boot": "boot id", "name": "night", "follows": last}
    assert records == [
        ("cancelled", 21, 25, [21, 22]),
        ("blob", "blob", b"bytes"),
        ("taken over", 3),
        ("blobs deleted", ["a", "b"]),
    ]


IMAGE = {
    "name": b"add_64",
    "architecture": b"opencl-c",
    "code": b"__kernel void add_64() {}",
    "entry": 0,
    "grid_size": 12,
    "block_size": 256,
    "shared_bytes": 1024,
    "scratch_bytes": 0,
    "arguments": 3,
    "slot_table": 1,
    "parts": 0,
    "finished": b"binary",
    "access": [0, 1, 2],
    "flops": 64,
    "bytes": 768,
}


def test_kernel_image():
    assert decoder.kernel_image(example("image.kernel")) == IMAGE


def sealed_table(name, version, used, folder):
    """The entries of a table of the kernel cache's form, by key."""
    path = shutil.copy(EXAMPLES / f"{name}.sqlite", folder)
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone() == (version,)
    schema = database.execute("SELECT name, sql FROM sqlite_master WHERE sql != ''")
    assert {name: " ".join(sql.split()) for name, sql in schema} == {
        name: f"CREATE TABLE {name}(key BLOB PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, "
        "value BLOB NOT NULL)",
        f"{name}_used": f"CREATE INDEX {name}_used ON {name}(used, bytes, key)",
    }
    rows = database.execute(f"SELECT key, used, bytes, value FROM {name}").fetchall()
    database.close()
    for key, when, size, value in rows:
        assert when == used
        assert size == len(key) + len(value)
        assert value[:32] == decoder.tag(KEY, key, value[32:])
    return {key: value[32:] for key, _, _, value in rows}


def test_kernel_cache(tmp_path):
    entries = sealed_table("kernels", 2, 1_700_000_000, tmp_path)
    assert set(entries) == {hashlib.sha256(key).digest() for key in (b"example key", b"tuned key")}
    assert decoder.cached_kernel(entries[hashlib.sha256(b"tuned key").digest()]) == {
        "schedule": b"split 0 8",
        "refused": b"",
        "refusal": b"",
        "seconds": 0.0,
        "image": IMAGE,
        "setting": b"setting 1\nstage 0 lanes=5\n",
        "setting_refusal": b"stage 0: lanes is 5",
        "setting_ignored": b"'polish=3': this version has no such knob",
    }
    assert decoder.cached_kernel(entries[hashlib.sha256(b"example key").digest()]) == {
        "schedule": b"split 0 8",
        "refused": b"vector 0",
        "refusal": b"it computes something else",
        "seconds": 0.125,
        "image": IMAGE,
    }


SETTING = {
    "kernel": b"buffer b0 float32[100] read\nbuffer b1 float32[100] write\nstage r0:100\n  b1[r0] = exp2(b0[r0])\n",
    "hardware": b"x86-64;x86-64-v3;+avx2,+fma;u2;v32x16;t1x1;s0;m32768;c524288",
    "version": 1,
    "setting": b"setting 1\nstage 0 form=point_lanes lanes=8\n",
    "seconds": [0.0015, 0.00125, 1e-7],
    "measured": 1_700_000_000,
    "width": 4,
}
SETTINGS = [SETTING | {"hardware": 'opencl-c;a "GPU"é'.encode(), "setting": b""}, SETTING]


def test_settings_text():
    assert decoder.settings_text(example("settings.txt")) == SETTINGS


def test_setting_store(tmp_path):
    entries = sealed_table("settings", 1, 1_700_000_001, tmp_path)
    # Only one kernel has a faster setting than the heuristic's.
    since = 1_700_000_001_000_000
    changes = [{"since": 0, "earlier": []}, {"since": since, "earlier": [(0, b"")]}]
    assert {key: decoder.setting_entry(entry) for key, entry in entries.items()} == {
        decoder.setting_key(setting): setting | change for setting, change in zip(SETTINGS, changes)
    }


def test_rates():
    assert decoder.rates_entry(example("rates.entry")) == {
        "all": {
            "float32": [4e11, 2e11],
            "float64": [0.0, 0.0],
            "traffic": [(65536, 2e11, 0.0, 0.0), (67_108_864, 4e10, 2e10, 3e10)],
        },
        "thread": {"float32": [0.0, 0.0], "float64": [5e10, 2.5e10], "traffic": []},
        "threads": 2,
        "launch_seconds": 1e-7,
    }


def test_worker_messages():
    job, rehearsal = decoder.job(example("job.message")), decoder.job(example("rehearsal.message"))
    assert all(job.pop("structs")) and all(rehearsal.pop("structs"))
    assert rehearsal.pop("rehearsal") == {
        "graph": b"a graph", "key": b"a key", "choices": b"choices 1\n", "setting": b"setting 1\n",
        "disabled_passes": [b"cluster", b"simplify"],
    }
    assert rehearsal == job == {
        "number": 7,
        "name": b"add_64",
        "kernel": b"a kernel",
        "schedule": b"split 0 8",
        "target": [b"opencl-c", b"gfx90a", b"+f", b"f", b"opencl", b"a GPU", b"1.0"],
        "unfinished": IMAGE,
    }
    assert decoder.answer(example("answer.message")) == (7, IMAGE)
    assert decoder.answer(example("error.message")) == (7, (13, b"no such instruction", {b"kiln/reason": b"WRONG"}))


def test_trial_messages():
    def request(name: str):
        return decoder.trial_request(example(f"trial_{name}.message"))

    assert request("open") == (300, 0, [b"a kernel", b"opencl-c gfx90a", 11, 1 << 33])
    assert request("prepare") == (301, 1, [2, 0.0, 0])
    assert request("load") == (302, 2, [5, [3, 400], [(IMAGE, [0, 2, 1])]])
    assert request("time") == (303, 3, [5, 1000, 0.25])
    assert request("run") == (304, 4, [5, 4, 0.25, 7, 1.5])
    assert decoder.trial_answer(example("trial_answer.message")) == (303, 0.125)
    error = (15, b"it writes outside its outputs", {b"kiln/reason": b"WRONG"})
    assert decoder.trial_answer(example("trial_error.message")) == (304, error)


def test_users():
    fingerprint = decoder.tag(KEY, b"fingerprint of a key").hex()[:16]
    assert decoder.table(example("users"), "kiln users 3") == [
        "ann admin certificate,system 1700000000 0 "
        f"0011223344556677;1700000000;1700086400;{fingerprint};$argon2id$hash "
        "8899aabbccddeeff;1700000000;0;;$argon2id$other",
        "bob user - 1700000000 1700003600",
    ]


def test_quotas():
    assert decoder.table(example("quotas"), "kiln quotas 2") == ["ann device_memory=4294967296 sessions=8"]


def test_ended_sessions():
    (line,) = decoder.table(example("ended_sessions"), "kiln ended sessions 1")
    digest = hashlib.sha256(b"secret id").hexdigest()
    assert line.split("\t") == [digest, "ann", "5", "no tensor 9", "UNKNOWN_HANDLE", "handle", "9"]


def test_audit_log():
    lines = example("audit.jsonl").decode().split("\n")
    assert lines.pop() == ""
    events = [json.loads(line) for line in lines]
    assert [list(event.items())[:6] for event in events] == [
        [
            ("number", number),
            ("time", "2023-11-14T22:13:20.123Z"),
            ("user", "root"),
            ("action", "add_user"),
            ("subject", subject),
            ("outcome", "ok"),
        ]
        for number, subject in ((1, "ann"), (2, 'a "name"\\n'))
    ]
    assert [json.dumps(event, separators=(",", ":"), ensure_ascii=False) for event in events] == lines
    previous = "0" * 64
    for line, event, kind in zip(lines, events, ("first line of a file\n", "next line\n")):
        assert list(event)[6:] == ["previous", "tag"]
        assert event["previous"] == previous
        covered = line[: line.rindex(',"tag":')]
        previous = event["tag"]
        assert previous == hmac.digest(example("example.key"), (kind + covered).encode(), "sha256").hex()
    number, tag, seal = example("audit.jsonl.head").decode().split()
    assert (int(number), tag, len(number)) == (2, previous, 20)
    assert seal == hmac.digest(example("example.key"), f"head of a log\n{number} {tag}".encode(), "sha256").hex()
