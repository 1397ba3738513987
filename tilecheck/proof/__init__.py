"""Decides obligations: canonical predicates, the ladder of rungs, z3, counterexamples and their replay."""
