"""Host inputs that lead to a launch, and the values that it passes there."""
