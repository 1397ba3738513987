"""The host borrow graph: what a host program owns, borrows and orders, and the queries over it."""
