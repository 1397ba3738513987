"""Operations that a program submits: launches, copies, calls of its own code."""
