"""The interpreter of kernels: statements, expressions, calls, names and modules."""
