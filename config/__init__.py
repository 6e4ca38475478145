import sys
from pathlib import Path

VERSION = "0.2.0"
# The packages in this folder are imported by their own names, both in the processes that run them and in ADE itself.
PROGRAMS = Path(__file__).resolve().parent.parent / "programs"

if str(PROGRAMS) not in sys.path:
    sys.path.append(str(PROGRAMS))
