"""Where things are inside a sandbox. Under Landlock these are folders below a place on the disk."""

from __future__ import annotations

import sys

SCRATCH = "/scratch"
ENVIRONMENT = "/env"  # a virtual environment that holds the asked-for packages alone
PYTHON = "bin/python"
CONFIG = "pyvenv.cfg"
SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
