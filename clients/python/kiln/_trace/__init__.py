"""kiln.jit: traces functions, and watches everything that they can reach."""
