"""cuTile's own operations for the reference backend."""
