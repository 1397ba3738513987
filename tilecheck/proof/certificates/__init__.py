"""Writes what was proved as text that other programs check."""
