"""Streams and the order of work on them."""
