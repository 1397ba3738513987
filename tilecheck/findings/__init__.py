"""Verdicts and findings in words, from what was decided of kernels and host functions."""
