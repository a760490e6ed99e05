"""Where tensors lie: on a device, or on a mesh of several, split or copied."""
