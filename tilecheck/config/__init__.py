"""What `[tool.tilecheck]` of a `pyproject.toml` says, and what the command line and the environment add to it.

The closest file above a path that has the table counts, and no other is merged into it. Whatever is not
understood ends the run: a typing error must not leave a kernel without its contract in silence. Reading a file
loads nothing of the analysis, so a run over files without kernels stays cheap; `contracts` alone needs the
front end.
"""
