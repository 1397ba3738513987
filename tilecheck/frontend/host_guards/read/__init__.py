"""Reads the statements and expressions of a guarded function."""
