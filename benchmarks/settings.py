"""The settings of ADE, with runs that do nothing: measured is what ADE does around them."""

from config.settings import *  # noqa: F403  # all of them, whatever is added
from config.settings import WORK_KINDS as _WORK_KINDS

WORK_KINDS = ["benchmarks.kinds.RUN" if path == "runs.kinds.RUN" else path for path in _WORK_KINDS]
