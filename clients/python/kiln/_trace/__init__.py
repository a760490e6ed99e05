"""kiln.jit: tracing functions, and watching what they reach."""
