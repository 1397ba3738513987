"""Symbolic execution: the parts of a run's state, each with what it keeps and answers."""
