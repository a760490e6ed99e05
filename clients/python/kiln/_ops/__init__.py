"""The table of ops, generated from the daemon's, and what a row of it says."""
