from documents import lifecycle
from work.kinds import Chore, Kind

DOCUMENT = Kind(lifecycle.DOCUMENT)
JOB = Kind(lifecycle.JOB, chores=(Chore(lifecycle.reset_zombies),))
STAGE = Kind(lifecycle.STAGE, rescue=lifecycle.rescue_stage)
