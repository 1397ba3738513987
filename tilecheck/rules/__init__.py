"""The rules, one file each; installed as `tilecheck.rules` and found by `tilecheck.registry`."""
