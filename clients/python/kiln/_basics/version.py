"""The package's version."""

__version__ = "0.1.0"

# Versions of the Python array API standard.
ARRAY_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
