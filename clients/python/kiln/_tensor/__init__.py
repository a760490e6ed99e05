"""The base classes of Tensor, each for one subject; kiln.tensor combines them."""
