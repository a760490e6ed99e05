"""Elementwise functions of the Python array API standard, and some more."""
