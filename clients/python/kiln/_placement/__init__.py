"""Placement of tensors: on one device, or split or copied on a mesh of several."""
