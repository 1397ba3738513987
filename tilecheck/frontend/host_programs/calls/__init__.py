"""Calls in host programs: Python's, PyTorch's, launches, and the host library's."""
