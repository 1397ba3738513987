"""Source text: parsing, walks over syntax trees, spans, and `# tilecheck:` comments."""
