"""Tensors of host code: layouts, views, and the library functions that make them."""
