"""Executes host functions: Python that allocates tensors, computes grids and launches kernels."""
