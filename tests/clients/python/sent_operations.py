"""Records the operations that a session sends to the daemon."""

import contextlib


@contextlib.contextmanager
def sent_operations(session):
    """Lists the names of the operations that are sent while the `with` block runs, in order.

    Releases are left out: they are sent when objects die and when the stream is idle, which a test
    cannot predict.
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
