"""Whether memory is written before it is used, and what it holds at first."""
