"""Symbolic values and their arithmetic."""
