"""Decodes Kiln's files and messages as docs/formats specifies them, with nothing of Kiln's own."""

import hashlib
import hmac
import struct
from collections.abc import Callable
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Reader:
    """Reads the encodings of docs/formats/README.md from bytes."""

    def __init__(self, data: bytes):
        self.data = data
        self.place = 0

    def take(self, count: int) -> bytes:
        assert self.place + count <= len(self.data), "bytes are missing"
        self.place += count
        return self.data[self.place - count : self.place]

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.place)

    def end(self) -> None:
        assert self.place == len(self.data), f"{len(self.data) - self.place} bytes are left over"

    def fixed32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def fixed64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def integer(self) -> int:
        """An integer of 8 bytes in two's complement."""
        return int.from_bytes(self.take(8), "little", signed=True)

    def number(self) -> int:
        number = 0
        for group in range(10):
            byte = self.take(1)[0]
            number |= (byte & 127) << 7 * group
            if byte < 128:
                assert number < 1 << 64
                return number
        raise AssertionError("a Number has more than 10 bytes")

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self.number())]

    def signed(self) -> int:
        number = self.number()
        return -(number + 1) // 2 if number & 1 else number // 2

    def real(self) -> float:
        (number,) = struct.unpack("<d", struct.pack("<Q", self.number()))
        return float(number)

    def text(self) -> str:
        return self.take(self.number()).decode()

    def raw_text(self) -> bytes:
        return self.take(self.number())

    def field(self) -> bytes:
        return self.take(self.fixed64())

    def flag(self) -> bool:
        flag = self.number()
        assert flag in (0, 1)
        return flag == 1

    def items(self, item: Callable[[], A]) -> list[A]:
        count = self.number()
        assert count <= len(self.data) - self.place
        return [item() for _ in range(count)]

    def all_of(self, *items: Callable[[], Any]) -> tuple[Any, ...]:
        return tuple(item() for item in items)

    def pairs(self, first: Callable[[], A], second: Callable[[], B]) -> list[tuple[A, B]]:
        return self.items(lambda: (first(), second()))

    def status(self) -> tuple[int, str, list[tuple[str, str]]] | None:
        """Code, message and payloads; None for OK."""
        code = self.number()
        assert code <= 16
        return (code, self.text(), self.pairs(self.text, self.text)) if code else None

    def stored_place(self) -> Any:
        """A device; or devices, axes and spec."""
        if not self.flag():
            return self.text()
        devices = self.items(self.text)
        axes = self.pairs(self.text, self.signed)
        spec = self.items(lambda: self.items(self.number))
        assert len(axes) <= 4 and len(devices) <= 64 and len(spec) <= 32
        return devices, axes, spec


def tag(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def checkpoint(data: bytes, key: bytes) -> dict[str, Any]:
    """docs/formats/session-checkpoint.md"""
    file = Reader(data)
    assert file.take(8) == b"kilnkeep"
    version, zero, size = file.all_of(file.fixed32, file.fixed32, file.fixed64)
    assert (version, zero) == (5, 0)
    description = file.take(size)
    first_tag = file.take(32)
    assert first_tag == tag(key, data[: 24 + size])
    content = file.take(len(data) - file.place - 32)
    assert file.take(32) == tag(key, first_tag, content)
    file.end()
    found = checkpoint_description(Reader(description))
    found["bytes"] = checkpoint_bytes(Reader(content), found)
    return found


ELEMENT_BYTES = [0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1]  # by dtype


def checkpoint_bytes(content: Reader, found: dict[str, Any]) -> list[bytes]:
    pieces = []
    for kind, *value in found["values"]:
        if kind != 0:
            continue
        dtype, shape = value
        size = ELEMENT_BYTES[dtype]
        for length in shape:
            size *= length
        pieces.append(content.take(size))
    pieces += [content.take(size) for _, size in found["blobs"]]
    content.end()
    return pieces


def checkpoint_description(d: Reader) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def value() -> tuple[Any, ...]:
        kind = d.number()
        if kind == 0:
            return kind, d.number(), d.items(d.signed)
        return (kind, d.status()) if kind == 1 else (kind,)

    def pending() -> tuple[Any, ...]:
        sequence, kind = d.all_of(d.number, d.number)
        if kind == 0:
            fields: tuple[Any, ...] = (d.number(), d.pairs(d.text, d.signed), d.items(d.number), d.items(d.number), d.flag())
        elif kind in (1, 2):
            fields = (d.number(),)
        elif kind == 3:
            fields = ()
        else:
            assert kind == 4
            fields = (d.number(), d.number(), d.stored_place())
        return sequence, kind, *fields

    def program() -> tuple[Any, ...]:
        number, error = d.all_of(d.number, d.status)
        return number, error if error else d.number()

    found["number"], found["id"], found["name"] = d.all_of(d.signed, d.text, d.text)
    found["client"] = d.all_of(d.text, d.text, d.text, d.number, d.flag)
    found["leases"] = d.all_of(d.signed, d.signed)
    found["priority"], found["opened"], found["generation"] = d.all_of(d.number, d.signed, d.number)
    found["parked"] = d.all_of(d.text, d.signed, lambda: d.pairs(d.text, d.number)) if d.flag() else None
    found["user"], found["device"], found["remaining"] = d.all_of(d.text, d.text, d.signed)
    found["executed"], found["runs"], found["device_seconds"] = d.all_of(d.number, d.signed, d.real)
    found["origins"] = d.pairs(d.text, d.text)
    found["values"] = d.items(value)
    found["pending"] = d.items(pending)
    found["answers"] = d.items(lambda: d.all_of(d.number, d.status, d.number, d.text, d.real))
    found["used_handles"] = d.pairs(d.number, d.number)
    found["handles"] = d.pairs(d.number, d.number)
    found["used_programs"] = d.pairs(d.number, d.number)
    found["programs"] = d.items(program)
    found["blobs"] = d.pairs(d.text, d.signed)
    found["cancelled"] = d.pairs(d.number, d.number)
    found["interval"], found["log"], found["goes_on"] = d.all_of(d.signed, d.number, d.flag)
    found["updates"] = [d.pairs(d.number, d.number) for _, kind, *_ in found["pending"] if kind == 0]
    found["places"] = [d.stored_place() for kind, *_ in found["values"] if kind == 0]
    found["origin_devices"] = [d.items(d.text) for _ in found["origins"]]
    found["origin_settings"] = [d.all_of(d.number, d.flag) for _ in found["origins"]]
    d.end()
    return found


def segment(data: bytes, key: bytes) -> tuple[dict[str, Any], list[tuple[Any, ...]], bytes]:
    """docs/formats/session-log.md: the header, the records and the last tag."""
    file = Reader(data)
    last = bytes(32)

    def frame() -> bytes:
        nonlocal last
        size, complement = file.all_of(file.fixed64, file.fixed64)
        assert complement == size ^ (1 << 64) - 1
        content, found = file.take(size), file.take(32)
        assert found == tag(key, last, struct.pack("<QQ", size, complement), content)
        last = found
        return content

    h = Reader(frame())
    names = ("version", "id", "number", "boot", "name", "follows")
    header = dict(zip(names, h.all_of(h.number, h.text, h.number, h.text, h.text, h.raw_text), strict=True))
    h.end()
    records = []
    while file.place < len(data):
        content = Reader(frame())
        assert content.number() == 0, "the examples have no large records"
        records.append(record(Reader(content.rest())))
    return header, records, last


def record(r: Reader) -> tuple[Any, ...]:
    kind = r.number()
    if kind == 0:
        found = ("executed", *r.all_of(r.number, r.number, r.number, r.number), *operation(r))
    elif kind == 1:
        found = ("cancelled", r.number(), r.number(), r.items(r.number))
    elif kind == 2:
        found = ("blob", r.text(), r.rest())
    elif kind == 3:
        found = ("taken over", r.number())
    else:
        assert kind == 4
        found = ("blobs deleted", r.items(r.text))
    r.end()
    return found


def operation(r: Reader) -> tuple[Any, ...]:
    def define() -> tuple[Any, ...]:
        number, name, error = r.all_of(r.number, r.text, r.status)
        return number, name, error if error else r.text()

    def write() -> tuple[Any, ...]:
        return r.all_of(r.number, r.number, lambda: r.items(r.signed), lambda: r.items(r.text), r.rest)

    kinds: list[tuple[str, Callable[[], tuple[Any, ...]]]] = [
        ("unknown", tuple),
        ("define", define),
        ("run", lambda: (r.number(), r.items(r.number), r.items(r.number), r.pairs(r.text, r.signed), r.flag())),
        ("write", write),
        ("read", lambda: (r.number(),)),
        ("release", lambda: (r.items(r.number), r.items(r.text))),
        ("release program", lambda: (r.number(),)),
        ("barrier", tuple),
        ("cancel", lambda: (r.number(),)),
        ("park", lambda: (r.text(), r.signed(), r.pairs(r.text, r.number))),
        ("refused", lambda: (r.status(), r.items(r.number))),
        ("move", lambda: (r.number(), r.number(), r.stored_place())),
        ("write", lambda: (r.stored_place(), *write())),
        ("define", lambda: (r.items(r.text), *define())),
        ("define", lambda: (r.number(), r.flag(), r.items(r.text), *define())),
    ]
    name, fields = kinds[r.number()]
    return name, *fields()


def checksum(data: bytes) -> int:
    """docs/formats/kernel-image.md"""
    value = 0xCBF29CE484222325 ^ len(data)
    for start in range(0, len(data), 8):
        word = int.from_bytes(data[start : start + 8], "little")
        value = (value ^ word) * 0x100000001B3 % (1 << 64)
        value ^= value >> 29
    return value


def kernel_image(data: bytes) -> dict[str, Any]:
    file = Reader(data)
    assert file.take(7) == b"KILNIMG"
    assert file.take(1)[0] == 5
    assert file.fixed64() == checksum(data[16:])
    found: dict[str, Any] = {name: file.field() for name in ("name", "architecture", "code")}
    for name in ("entry", "grid_size", "block_size", "shared_bytes", "scratch_bytes", "arguments", "slot_table", "parts"):
        found[name] = file.integer()
    found["finished"], found["access"] = file.field(), list(file.field())
    found["flops"], found["bytes"] = file.integer(), file.integer()
    file.end()
    return found


def cached_kernel(data: bytes) -> dict[str, Any]:
    """docs/formats/kernel-cache.md"""
    entry = Reader(data)
    found: dict[str, Any] = {name: entry.field() for name in ("schedule", "refused", "refusal")}
    (found["seconds"],) = struct.unpack("<d", entry.field())
    found["image"] = kernel_image(entry.field())
    if entry.place < len(data):
        found |= {name: entry.field() for name in ("setting", "setting_refusal", "setting_ignored")}
    entry.end()
    return found


SETTING_FIELDS = ("hardware", "version", "seconds", "measured", "width", "kernel", "setting")


def setting_key(setting: dict[str, Any]) -> bytes:
    """docs/formats/settings.md"""
    hardware, version = setting["hardware"], setting["version"]
    assert len(hardware) < 128 and version < 128, "the example's Numbers have one byte"
    return hashlib.sha256(bytes([len(hardware)]) + hardware + bytes([version]) + setting["kernel"]).digest()


def setting_entry(data: bytes) -> dict[str, Any]:
    entry = Reader(data)
    assert entry.number() == 2
    found: dict[str, Any] = {}
    found["kernel"], found["hardware"], found["version"] = entry.all_of(entry.raw_text, entry.raw_text, entry.number)
    found["setting"], found["seconds"] = entry.raw_text(), [entry.real() for _ in range(3)]
    found["measured"], found["width"] = entry.signed(), entry.number()
    found["since"], found["earlier"] = entry.number(), entry.pairs(entry.number, entry.raw_text)
    entry.end()
    return found


def throughput(data: Reader) -> dict[str, Any]:
    found: dict[str, Any] = {name: [data.real(), data.real()] for name in ("float32", "float64")}
    found["traffic"] = [(data.number(), data.real(), data.real(), data.real()) for _ in range(data.number())]
    return found


def rates_entry(data: bytes) -> dict[str, Any]:
    entry = Reader(data)
    assert entry.number() == 101
    found: dict[str, Any] = {"all": throughput(entry), "thread": throughput(entry)}
    found["threads"], found["launch_seconds"] = entry.number(), entry.real()
    entry.end()
    return found


def settings_text(data: bytes) -> list[dict[str, Any]]:
    lines = data.decode().split("\n")
    assert lines[0] == "kiln settings 1"
    place = 1
    found: list[dict[str, Any]] = []
    while not lines[place].startswith("end of "):
        setting: dict[str, Any] = {}
        for field in SETTING_FIELDS:
            word, value = lines[place].split(" ", 1)
            place += 1
            assert word == field
            if field == "hardware":
                setting[field] = value.encode("ascii").decode("unicode_escape").encode("latin-1")
            elif field == "seconds":
                setting[field] = [float(number) for number in value.split(" ")]
            elif field in ("kernel", "setting"):
                end = place + int(value)
                setting[field] = "".join(f"{line}\n" for line in lines[place:end]).encode()
                place = end
            else:
                setting[field] = int(value)
        found.append(setting)
    assert lines[place:] == [f"end of {len(found)}", ""]
    return found


def job(data: bytes) -> dict[str, Any]:
    """docs/formats/worker-messages.md"""
    message = Reader(data)
    found: dict[str, Any] = {"number": Reader(message.field()).fixed64()}
    found |= {name: message.field() for name in ("name", "kernel", "schedule")}
    found["target"] = [message.field() for _ in range(7)]
    found["structs"] = [message.field() for _ in range(4)]
    found["unfinished"] = kernel_image(message.field())
    rehearses = message.field()
    assert rehearses in (b"\0", b"\1")
    if rehearses == b"\1":
        found["rehearsal"] = {name: message.field() for name in ("graph", "key", "choices", "setting")}
        found["rehearsal"]["disabled_passes"] = disabled = []
        while message.place < len(message.data):
            disabled.append(message.field())
    message.end()
    return found


def error(message: Reader) -> tuple[int, bytes, dict[bytes, bytes]]:
    """The code, the message and the payloads, which extend to the end."""
    (code,) = struct.unpack("<i", message.field())
    found: tuple[int, bytes, dict[bytes, bytes]] = code, message.field(), {}
    while message.place < len(message.data):
        url = message.field()
        found[2][url] = message.field()
    return found


def answer(data: bytes) -> tuple[int, Any]:
    """The number of the job, and an image or an error."""
    message = Reader(data)
    number, ok = Reader(message.field()).fixed64(), message.field()
    assert ok in (b"\0", b"\1")
    if ok == b"\1":
        found: Any = kernel_image(message.field())
    else:
        found = error(message)
    message.end()
    return number, found


def trial_request(data: bytes) -> tuple[int, int, list[Any]]:
    """docs/formats/trial-messages.md: the number, the kind, and the content."""
    message = Reader(data)
    number, kind = message.fixed64(), message.number()
    found: list[Any] = []
    if kind == 0:
        found = [message.field(), message.field(), message.fixed64(), message.fixed64()]
    if kind in (2, 3, 4):
        found = [message.number()]
    if kind == 2:
        found += [message.numbers()]
        found += [[(kernel_image(message.field()), message.numbers()) for _ in range(message.number())]]
    if kind == 3:
        found += [message.number()]
    if kind in (1, 4):  # the inputs
        found += [message.number(), message.real(), message.fixed64()]
    if kind in (3, 4):
        found += [message.real()]
    message.end()
    return number, kind, found


def trial_answer(data: bytes) -> tuple[int, Any]:
    """The number of the request, and seconds or an error."""
    message = Reader(data)
    number = message.fixed64()
    if message.number() == 1:
        found: Any = message.real()
    else:
        found = error(message)
    message.end()
    return number, found


def table(data: bytes, header: str) -> list[str]:
    """docs/formats/state-tables.md"""
    lines = data.decode().split("\n")
    assert lines[0] == header
    assert lines[-2:] == [f"end of {len(lines) - 3}", ""]
    return lines[1:-2]
