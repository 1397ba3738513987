"""Counterexamples: models made concrete, replayed, minimised and put in the user's names."""
