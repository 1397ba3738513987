"""The rungs of the ladder, one a file: each proves what it can and never refutes."""
