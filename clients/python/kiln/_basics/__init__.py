"""What everything else rests on: errors, dtypes, numbers of the host, values of variables."""
