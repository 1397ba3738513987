"""Calls in guarded functions: the library's own, those of the project, and others."""
