"""Where the kernels of a run may be launched: from one file to the next, by what their names may stand for."""
