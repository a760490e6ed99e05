"""The table of ops, generated from the daemon's, and the definition of its rows."""
