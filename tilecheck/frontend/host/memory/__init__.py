"""Memory of host code: who shares it, what it holds, what may change it."""
