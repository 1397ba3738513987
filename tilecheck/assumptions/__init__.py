"""Decides a kernel once more under assumptions that its file does not state."""
