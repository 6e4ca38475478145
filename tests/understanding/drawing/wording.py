"""The words of drawn papers, from `wording.toml`."""

import tomllib
from pathlib import Path

WORDING = tomllib.loads((Path(__file__).parent / "wording.toml").read_text("utf-8"))
OTHERS = tomllib.loads((Path(__file__).parent / "others.toml").read_text("utf-8"))
LANGUAGES = sorted(WORDING)
NAMES = OTHERS["names"]
