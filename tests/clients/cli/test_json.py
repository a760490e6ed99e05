"""`kiln` prints with --json what --json_schema says, and numbers are numbers."""

import json
import subprocess
import sys

import pytest

from eventually import GIVE_UP_SECONDS
from kilnd_process import NO_PROBES, Kilnd, build_folder

KILN = build_folder() / "clients/cli/kiln"
CLIENT = """
import kiln
@kiln.jit
def double(x):
    return (x * 2).sum()
print(float(double(kiln.ones(100)).numpy()))
sys = __import__("sys")
print("ready", flush=True)
sys.stdin.read()
"""
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def check(value: object, schema: dict, path: str) -> None:
    """Checks a value against the words of JSON Schema that `kiln` uses, and refuses others."""
    words = set(schema) - {"$schema", "title", "format", "contentEncoding"}
    assert words <= {"type", "properties", "required", "additionalProperties", "items", "minimum", "enum", "anyOf"}, words
    if "anyOf" in schema:
        return check(value, schema["anyOf"][0 if isinstance(value, str) else 1], path)
    if "enum" in schema:
        assert value in schema["enum"], path
        return None
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    assert any(is_number if name == "number" else is_number and isinstance(value, int) if name == "integer"
               else isinstance(value, TYPES[name]) for name in types), f"{path} is {value!r}, not {types}"
    if "minimum" in schema:
        assert value >= schema["minimum"], path
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema["items"], f"{path}[{i}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        assert set(schema.get("required", ())) <= set(value), f"{path} lacks {set(schema['required']) - set(value)}"
        for name, member in value.items():
            assert name in properties or schema["additionalProperties"], f"{path} has {name}"
            check(member, properties.get(name) or schema["additionalProperties"], f"{path}.{name}")
    return None


@pytest.fixture(scope="module")
def busy():
    """A daemon with a session, a program, users, quotas and audited events."""
    with Kilnd(threads=1, config=NO_PROBES) as daemon:
        client = subprocess.Popen([sys.executable, "-c", CLIENT], env=daemon.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        while "ready" not in client.stdout.readline():
            assert client.poll() is None
        run(daemon, "quota", "set", "ann", "sessions=8")
        yield daemon
        client.communicate(timeout=GIVE_UP_SECONDS)


def run(daemon: Kilnd, *arguments: str) -> str:
    done = subprocess.run([KILN, *arguments], env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("command", [
    ["status"], ["devices"], ["sessions"], ["programs"], ["kernels"], ["explain", "double"], ["cache"], ["top"],
    ["tune", "double", "--seconds", "30", "--width", "1"], ["tune", "list"], ["user", "list"], ["quota"], ["quota", "set", "ann", "buffers=9"],
    ["audit"], ["audit", "verify"], ["version"], ["cache", "clear"],
], ids=" ".join)
def test_outputs_fit_their_schemas(busy, command):
    schema = json.loads(run(busy, *command, "--json_schema"))
    text = run(busy, *command, "--json")
    assert text.isascii()
    lines = text.splitlines() if schema["title"].endswith("each line") else [text]
    assert lines
    for line in lines:
        check(json.loads(line), schema, command[0])


def test_a_schema_refuses_what_is_different(busy):
    schema = json.loads(run(busy, "devices", "--json_schema"))
    devices = json.loads(run(busy, "devices", "--json"))
    for name, value in (("memory_total_bytes", "1"), ("memory_total_bytes", -1), ("utilization", "0"), ("health", "FINE"), ("more", 1)):
        wrong = json.loads(json.dumps(devices))
        wrong["devices"][0][name] = value
        with pytest.raises(AssertionError):
            check(wrong, schema, "devices")
