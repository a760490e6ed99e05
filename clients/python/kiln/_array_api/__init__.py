"""The functions of `kiln`, by the chapters of the Python array API standard."""
