"""The session with the daemon: connection, stream of operations, values and programs there."""
