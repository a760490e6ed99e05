"""The version of the client, and of the daemon that is built from the same sources."""

__version__ = "0.2.0"

# Versions of the Python array API standard.
ARRAY_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
