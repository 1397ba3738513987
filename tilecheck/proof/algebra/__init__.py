"""Polynomials, intervals and normal forms of integer expressions."""
