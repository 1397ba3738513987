"""Loops of host programs: the rounds that stand for all of them."""
