from datetime import timedelta

from schedules.jobs import JobContext
from tests.factories import JobRunFactory, claim_of
from work import clock


def turn_of(job, scheduled_for=None):
    """Create a slot of this job and return a turn in it, as a worker has it."""
    slot = scheduled_for or clock.now().replace(microsecond=0)
    row = JobRunFactory(job_name=job.name, scheduled_for=slot)
    claim = claim_of(row)
    claim.trust(claim.trusted_until + timedelta(hours=1).total_seconds())
    return JobContext(job, slot, claim)
