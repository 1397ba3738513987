"""Module-level names: what they are bound to, and what may change them."""
