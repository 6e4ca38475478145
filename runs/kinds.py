from runs import gates, job_runs, lifecycle
from work.kinds import Chore, Kind

RUN = Kind(
    lifecycle.RUN,
    rescue=lifecycle.rescue,
    budget="ADE_RUN_TIMEOUT_SECONDS",
    # Shut gates are rare to be forgotten and dear to look for: not in every tick.
    chores=(Chore(lifecycle.heed_builds), Chore(gates.open_forgotten, every=5)),
    wakes_on=("build",),
)
JOB_RUN = Kind(job_runs.JOB_RUN, rescue=job_runs.rescue)
