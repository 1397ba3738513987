"""From source text to the IR: modules, symbolic execution, contracts, launches."""
