"""The lazy graph: nodes, graph messages, computing and reading values."""
