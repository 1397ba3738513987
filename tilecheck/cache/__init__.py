"""Results of earlier runs, kept by what decides them."""
