"""What the files of a run assign in modules of each other, found without running anything."""
