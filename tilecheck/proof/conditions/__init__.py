"""Launch conditions under which open obligations hold, and the contracts that they need."""
