"""Graphs: captured once, launched many times."""
