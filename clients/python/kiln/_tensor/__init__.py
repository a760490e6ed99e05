"""The parts of the class Tensor, which kiln.tensor puts together."""
