"""ADE's settings, but with runs that do nothing, so that the measurement shows ADE's overhead."""

from config.settings import *  # noqa: F403  # settings are added without a change here
from config.settings import WORK_TYPES as _WORK_TYPES

WORK_TYPES = ["benchmarks.kinds.RUN" if path == "runs.work_types.RUN" else path for path in _WORK_TYPES]
