"""The linear algebra extension of the Python array API standard."""

from kiln.linear_algebra import matmul, matrix_transpose

__all__ = ["matmul", "matrix_transpose"]
