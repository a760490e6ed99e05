"""A strict reader of traces in Chrome's trace event format, as far as `kiln trace` writes it.

Perfetto and chrome://tracing read a thread's complete events ("X") as a stack: an event that begins within another one must
end within it. A file that breaks these rules is shown wrongly, or not at all, without a message. So this reader refuses it.
"""

from __future__ import annotations

import dataclasses
import decimal
import json

NAMES = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


@dataclasses.dataclass(frozen=True)
class Slice:
    process: str
    thread: str
    category: str
    name: str
    start: decimal.Decimal  # microseconds, as is
    end: decimal.Decimal
    depth: int  # how many slices it is within
    arguments: dict


@dataclasses.dataclass(frozen=True)
class Trace:
    slices: list[Slice]
    other: dict
    gaps: list[str]
    counters: dict[tuple[str, str], list[tuple[decimal.Decimal, int]]]  # by process and name


def _keys(event: dict, wanted: set[str]) -> None:
    assert set(event) == wanted, f"{event} has not exactly {sorted(wanted)}"


def _refuse_twice(pairs: list[tuple]) -> dict:
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a name is there twice: {names}"
    return dict(pairs)


def _stack(events: list[dict], process: str, thread: str) -> list[Slice]:
    """The slices of a thread. Raises if they are not nested, or not in the order of their beginnings."""
    slices, open_ends, last = [], [], decimal.Decimal(-1)
    for event in events:
        start, end = event["ts"], event["ts"] + event["dur"]
        assert start >= last, f"{event} comes after a later one"
        last = start
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], f"{event} on {process}, {thread} ends after the slice around it"
        slices.append(Slice(process, thread, event["cat"], event["name"], start, end, len(open_ends), event["args"]))
        open_ends.append(end)
    return slices


def read(text: str) -> Trace:
    document = json.loads(text, parse_float=decimal.Decimal, parse_int=decimal.Decimal, object_pairs_hook=_refuse_twice)
    _keys(document, {"displayTimeUnit", "otherData", "traceEvents"})
    assert document["displayTimeUnit"] in ("ms", "ns")
    processes, threads, events, gaps, counters = {}, {}, {}, [], {}
    for event in document["traceEvents"]:
        match event["ph"]:
            case "M":
                _keys(event, {"ph", "name", "pid", "tid", "args"})
                assert event["name"] in NAMES, event
                if event["name"] == "process_name":
                    assert event["pid"] not in processes, f"{event} is the second name"
                    processes[event["pid"]] = event["args"]["name"]
                elif event["name"] == "thread_name":
                    assert event["pid"] in processes and (event["pid"], event["tid"]) not in threads, event
                    threads[event["pid"], event["tid"]] = event["args"]["name"]
            case "X":
                _keys(event, {"ph", "cat", "name", "ts", "dur", "pid", "tid", "args"})
                assert event["ts"] >= 0 and event["dur"] >= 0 and event["name"], event
                # Three digits are nanoseconds, the unit in which Perfetto counts.
                assert all(event[time].as_tuple().exponent == -3 for time in ("ts", "dur")), event
                events.setdefault((event["pid"], event["tid"]), []).append(event)
            case "C":
                _keys(event, {"ph", "name", "ts", "pid", "args"})
                _keys(event["args"], {"count"})
                counter = counters.setdefault((processes[event["pid"]], event["name"]), [])
                assert not counter or event["ts"] > counter[-1][0], f"{event} is not after the value before it"
                assert event["args"]["count"] >= 0, event
                counter.append((event["ts"], int(event["args"]["count"])))
            case "i":
                _keys(event, {"ph", "s", "cat", "name", "ts", "pid", "tid"})
                gaps.append(event["name"])
            case phase:
                raise AssertionError(f"unknown phase {phase}")
    assert set(events) == set(threads), "threads without a name, or names without a thread"
    slices = [piece for track, of_track in events.items() for piece in _stack(of_track, processes[track[0]], threads[track])]
    return Trace(slices, document["otherData"], gaps, counters)
