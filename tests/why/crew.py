"""Workers that exist only as rows: which are alive, how many slots they have, and the claims of these slots."""

from collections import Counter
from datetime import timedelta
from itertools import count

from tests.factories import MOVES, write
from work import boots, clock
from work.models import Worker
from work.work_types import work_type_named

BOOTS = count(1)


def sign_on(**lanes):
    return boots.register("w", f"boot{next(BOOTS)}", lanes)


def fall_silent(worker):
    return write(worker, heartbeat_at=clock.now() - timedelta(days=1))


def sign_off(worker):
    return write(worker, stopped_at=clock.now())


def free_slots(kind):
    """Return the owner of each free slot."""
    model = work_type_named(kind).states.model
    held = Counter(model._base_manager.filter(status=model.CLAIMED).values_list("lease_owner", flat=True))
    slots = Counter({worker.owner: worker.lanes.get(kind, 0) for worker in Worker.objects.alive()})
    return sorted((slots - held).elements())


def claims(kind, chance):
    """Claim with all free slots in random order, each through its handler; return the claims."""
    owners = free_slots(kind)
    chance.shuffle(owners)
    return [claim for owner in owners if (claim := work_type_named(kind).handler.claim(owner))]


def waiting(model):
    return model._base_manager.filter(status=MOVES[model].initial).order_by("pk")
