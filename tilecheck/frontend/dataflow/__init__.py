"""How values derive from loads and from each other, and computations recognised as a whole."""
