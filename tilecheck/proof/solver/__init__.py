"""The solver: sessions, lemmas, known models, and limits on its work."""
