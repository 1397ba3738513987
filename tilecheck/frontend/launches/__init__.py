"""Launches that host code shows: where they are, and what they pass."""
