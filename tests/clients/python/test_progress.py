"""Progress of a long call on stderr, with a fake clock; the lines that are written are compared."""

import io
import sys
import threading
from typing import Any, Callable, List, Sequence

import pytest

import kiln
from kiln._proto.kiln.v1.program_pb2 import FirstCall
from kiln._session import progress
from kiln._session.waiter import Waiter

CLEAR = "\r\x1b[K"


class Call:
    """A call that takes a number of seconds of a fake clock, which waiting advances, and a daemon's
    first calls during it.
    """

    def __init__(self, seconds: float, kernels: int = 84):
        self.now = 0.0
        self.kernels = kernels
        self.questions: List[float] = []
        self._ends = seconds

    def wait_for(self, seconds: float) -> bool:
        self.now = min(self.now + seconds, self._ends)
        return self.now >= self._ends

    def wait(self) -> Any:
        self.now = self._ends
        return self.result()

    def result(self) -> Any:
        return "result"

    def ask(self) -> Sequence[Any]:
        self.questions.append(self.now)
        if not self.kernels:
            return []
        return [FirstCall(name="train", part="compile", seconds=self.now, kernels=self.kernels, kernels_made=int(10 * self.now))]


def at_once(function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    """Runs the function in place of starting a thread."""
    function(*arguments)


def told(call: Call, file: Any, start: Callable[..., Any] = at_once) -> str:
    """Returns what is written to a file during a call."""
    progress.Teller(call.ask, file, lambda: call.now, start).until_resolved(call)
    return file.getvalue()


@pytest.fixture
def nobody_tells(monkeypatch):
    """Makes progress an error."""
    monkeypatch.setattr(progress, "Teller", None)


@pytest.fixture(autouse=True)
def on(monkeypatch):
    """Removes the variable, which is set for all other tests."""
    monkeypatch.delenv("KILN_PROGRESS")


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_updated_and_gone_in_the_end():
    text = told(Call(1.0), Terminal())
    lines = text.split(CLEAR)
    assert lines == ["", "kiln: compiling 0 of 84 kernels of train, 0 s", "kiln: compiling 5 of 84 kernels of train, 0 s", ""]


def test_elsewhere_lines_are_few_and_stay():
    call = Call(35)
    lines = told(call, io.StringIO()).splitlines()
    assert len(lines) == len(call.questions) == 4
    assert lines[0] == "kiln: compiling 0 of 84 kernels of train, 0 s"
    assert "\r" not in "".join(lines)


def test_without_a_first_call_nothing_is_written_and_the_daemon_is_asked_seldom():
    call = Call(60, kernels=0)
    assert told(call, Terminal()) == ""
    assert len(call.questions) <= 60 / progress.IDLE_SECONDS


def test_a_daemon_that_does_not_answer_is_not_asked_again_and_holds_nothing_up():
    call = Call(60)
    assert told(call, Terminal(), start=lambda function, arguments: call.questions.append(call.now)) == ""
    assert call.questions == [0.0]


def test_a_daemon_that_does_not_know_is_no_error():
    call = Call(1.0)

    def fails() -> Sequence[Any]:
        raise RuntimeError("UNIMPLEMENTED")

    call.ask = fails
    assert told(call, Terminal()) == ""


def test_an_interrupt_leaves_no_line_behind():
    call = Call(100)
    terminal = Terminal()

    def interrupted(seconds: float) -> bool:
        call.now += seconds
        if call.now > 1:
            raise KeyboardInterrupt
        return False

    call.wait_for = interrupted
    with pytest.raises(KeyboardInterrupt):
        told(call, terminal)
    assert terminal.getvalue().endswith(CLEAR)


def test_a_file_that_nobody_can_write_to_is_no_error():
    closed = io.StringIO()
    closed.close()
    call = Call(1)
    progress.Teller(call.ask, closed, lambda: call.now, at_once).until_resolved(call)
    assert call.questions


def test_short_calls_tell_nothing_and_ask_nobody(nobody_tells):
    call = Call(progress.SILENT_SECONDS)
    assert progress.wait(call, call.ask) == "result"
    assert call.questions == []


@pytest.mark.parametrize("value", ["off", "0"])
def test_a_setting_turns_it_off(monkeypatch, nobody_tells, value):
    monkeypatch.setenv("KILN_PROGRESS", value)
    call = Call(100)
    assert progress.wait(call, call.ask) == "result"
    assert call.questions == []


def test_a_second_thread_that_waits_is_silent(nobody_tells):
    call = Call(100)
    with progress._telling:
        assert progress.wait(call, call.ask) == "result"


def test_a_long_call_tells_what_goes_on(monkeypatch):
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    call = Call(100)
    asked = threading.Event()

    def ask() -> Sequence[Any]:
        asked.set()
        return call.ask()

    def until_it_is_told(seconds: float) -> bool:
        if call.now == 0:
            call.now = seconds
            return False
        asked.wait()
        return bool(stderr.getvalue())

    call.wait_for = until_it_is_told
    assert progress.wait(call, ask) == "result"
    assert stderr.getvalue() == "kiln: compiling 20 of 84 kernels of train, 2 s\n"


def test_errors_are_raised_as_without_it():
    waiter = Waiter()
    waiter.resolve(error=kiln.Cancelled("why"))
    with pytest.raises(kiln.Cancelled, match="why"):
        progress.wait(waiter, lambda: [])


def test_a_names_control_characters_do_not_reach_the_terminal():
    assert progress.text_of([FirstCall(name="a\x1b[2Jb", part="run", seconds=1)]) == "kiln: first run of a?[2Jb, 1 s"


def test_the_daemon_is_asked_for_this_session(connection):
    connection.synchronize()
    assert list(connection.stream.ask()) == []
