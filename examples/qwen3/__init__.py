"""Qwen3 on verified kernels: from a folder of weights to text."""
