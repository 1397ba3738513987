"""Goals as formulas, and the contracts and protocols that they may use."""
