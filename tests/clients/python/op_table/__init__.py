"""The numerics table: every op of the daemon's table, with what JAX or NumPy says it computes.

A family of ops is a module with `ROWS`, from an op's name to its row; `table.py` puts them
together.
"""
