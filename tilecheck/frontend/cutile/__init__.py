"""The cuTile dialect: what its names mean, and how its accesses touch memory."""
