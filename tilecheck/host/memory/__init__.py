"""Memory in play: arrays and their handles, regions, storage, and when it is freed."""
