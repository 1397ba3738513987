"""What the names of Triton mean to the checker."""
