"""exits.py CODE COMMAND...: succeeds when the command ends with exactly this code."""

import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
sys.exit(0 if code == int(sys.argv[1]) else f"expected exit code {sys.argv[1]}, found {code}")
