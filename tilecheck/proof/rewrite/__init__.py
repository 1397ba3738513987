"""Rewrites of obligations before the ladder: cases, conditionals, families of accesses."""
