"""What a session sends to the daemon."""

import contextlib


@contextlib.contextmanager
def sent_operations(session):
    """The names of the operations that are sent while the `with` block runs, in order.

    Without releases: those are sent when objects die and when nothing else is sent, which no test can foretell.
    """
    stream = session.stream
    enqueue = stream._enqueue
    names = []

    def remembers(callback, size, operation, missed=None):
        names.extend(name for name in operation if not name.startswith("release"))
        enqueue(callback, size, operation, missed)

    stream._enqueue = remembers
    try:
        yield names
    finally:
        del stream._enqueue
