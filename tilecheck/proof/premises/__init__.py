"""What follows from premises without a solver."""
