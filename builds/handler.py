"""The handler of builds: what a worker does to make an environment."""

import time

from django.conf import settings

from builds import builder, lifecycle
from builds.builder import BuildFailed, BuildResult, Watch
from builds.models import Build
from work import failpoints
from work.claims import Claim, Interrupted, ResultRefused
from work.journal import Journal
from work.processes.supervise import CannotStart


def do(claim: Claim) -> BuildResult:
    journal = Journal(claim)
    build = Build.objects.only("snapshot", "fingerprint").get(pk=claim.id)
    watch = Watch(
        until=time.monotonic() + settings.ADE_BUILD_TIMEOUT,
        time=f"the time limit of a build, {settings.ADE_BUILD_TIMEOUT} s (ADE_BUILD_TIMEOUT)",
        stop=journal.why_stop,
        on_start=journal.keep,
        say=journal.lines,
    )
    try:
        return builder.make(build.snapshot, build.fingerprint, watch)
    except Interrupted:
        journal.write()
        raise
    finally:
        failpoints.hit("build.exited")


def succeed(claim: Claim, result: BuildResult) -> bool:
    return lifecycle.succeed(claim, lock=result.lock, size_bytes=result.size_bytes)


def fail(claim: Claim, error: BaseException) -> bool:
    failure_type, message = "BUILD_FAILED", f"Internal error: {error!r}"
    if isinstance(error, BuildFailed):
        failure_type, message = error.failure_type, str(error)
    elif isinstance(error, CannotStart | ResultRefused):
        message = str(error)
    elif isinstance(error, OSError):
        message = f"The environment could not be written: {error}"
    return lifecycle.fail(claim, failure_type, message)
