"""`tilecheck gate`: kernels as JSON lines in, one answer a line out, each in bounded time and memory."""
