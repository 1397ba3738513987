"""Emitters, one a file: they turn a `Report` into text and decide nothing."""
