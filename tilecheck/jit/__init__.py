"""Back ends that run kernels. Here: the NumPy reference."""
