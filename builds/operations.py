"""The operations on builds; see `work/operations/previews.py`."""

from builds import lifecycle
from builds.lifecycle import BUILD_STATES
from builds.models import Build
from work.operations.outcomes import Outcome, of_cancel, preview_cancel
from work.operations.previews import Operation


def cancel(build: Build, *, actor: str, reason: str = "") -> Outcome:
    return of_cancel(BUILD_STATES, build.status, lifecycle.cancel(build, actor=actor, reason=reason))


def build_again(build: Build, *, actor: str) -> Outcome:
    return Outcome.MADE if lifecycle.again(build.pk, actor=actor) else Outcome.NOT_ENDED


def _predict_again(build: Build) -> Outcome:
    return Outcome.MADE if build.status in BUILD_STATES["again"].origins else Outcome.NOT_ENDED


BUILD_AGAIN = Operation("again", "Build again", build_again, _predict_again)
CANCEL = Operation(
    "cancel", "Cancel", cancel, lambda build: preview_cancel(BUILD_STATES, build.status), takes_reason=True
)
