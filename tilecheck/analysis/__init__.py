"""What is known of a kernel: passes over its IR, and the borrow graph."""
