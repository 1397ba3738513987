"""Module-level constants: computed from their text, never by running it."""
