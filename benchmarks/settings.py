"""The settings of ADE with runs that do nothing, so that the measurement shows the overhead of ADE."""

from config.settings import *  # noqa: F403  # settings are added without a change here
from config.settings import WORK_KINDS as _WORK_KINDS

WORK_KINDS = ["benchmarks.kinds.RUN" if path == "runs.kinds.RUN" else path for path in _WORK_KINDS]
