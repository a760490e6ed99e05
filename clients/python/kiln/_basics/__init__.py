"""The foundation of the package: errors, dtypes, numbers of the host, values of variables."""
