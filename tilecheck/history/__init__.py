"""Comparison with earlier states: baselines, revisions of git, fingerprints of findings."""
