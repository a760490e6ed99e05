"""The lazy graph: nodes, its message, computing and reading values."""
