"""The values of kernels: scalars, tiles, arrays, and their elements in memory."""
