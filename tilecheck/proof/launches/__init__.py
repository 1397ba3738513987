"""Visible launches: whether each meets what its kernel needs."""
