"""Verified kernels in Triton."""
