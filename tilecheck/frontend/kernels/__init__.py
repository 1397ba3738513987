"""Kernels as they stand in a file: parameters, annotations, contracts."""
