"""Verified kernels; each file holds kernels, the host functions that launch them, and a NumPy reference."""
