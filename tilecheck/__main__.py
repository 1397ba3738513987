"""`python -m tilecheck` is the same program as `tilecheck`."""

from __future__ import annotations

import sys

from tilecheck.cli import main

if __name__ == "__main__":
    sys.exit(main())
