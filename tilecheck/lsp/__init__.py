"""The language server: `tilecheck server`. Only `server.py` needs pygls; the rest is plain values."""
