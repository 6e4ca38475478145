"""The operations that people perform on feeds: see `work/operations/previews.py`."""

from feeds import sources
from feeds.models import FeedSource
from work.operations.outcomes import Outcome, preview_pause, preview_resume
from work.operations.previews import Operation


def _predict_check(feed: FeedSource) -> Outcome:
    return Outcome.IS_PAUSED if feed.paused_at else Outcome.DUE


CHECK_NOW = Operation("check_now", "Check now", sources.make_due, _predict_check)
PAUSE = Operation("pause", "Pause", sources.pause, preview_pause, takes_reason=True)
RESUME = Operation("resume", "Resume", sources.resume, preview_resume)
