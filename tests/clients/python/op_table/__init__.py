"""The numerics table: every op of the daemon's table, with a reference in JAX or NumPy.

A family of ops is a module with `ROWS`, from an op's name to its row; `table.py` combines them.
"""
