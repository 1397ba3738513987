"""Triton's own operations for the reference backend; everything else is shared with the other language."""
