"""Replays of visible launches, to see the harm that they do."""
