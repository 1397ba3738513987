"""Emitters, one a file: each renders a finished run in one format."""
