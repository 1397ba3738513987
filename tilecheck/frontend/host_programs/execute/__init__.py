"""Runs the statements and expressions of host programs."""
