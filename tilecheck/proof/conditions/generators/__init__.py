"""Candidates for launch conditions, one kind a file."""
