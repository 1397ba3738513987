"""Arithmetic on sizes and shapes of host code."""
