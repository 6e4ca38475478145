"""Create and send deliveries as a worker does, without a worker process."""

from threading import Event as Flag

from tests.factories import W1, write
from webhooks.following import Follower
from webhooks.models import Delivery
from webhooks.work_types import DELIVERY
from work import clock
from work.claims import Holdings
from work.worker_thread import Bell, WorkerThread

NETWORK = "127.0.0.0/8"


def follow(owner=W1):
    """Follow as a worker does that has just started: twice, because gaps are judged at the second look."""
    follower = Follower()
    return follower.follow(owner) + follower.follow(owner)


def send_next(owner=W1):
    """Send one delivery; return False if none is due."""
    about = {"owner": owner, "bell": Bell(), "holdings": Holdings(), "stopping": Flag(), "on_end": lambda kind: None}
    return WorkerThread(DELIVERY, 0, **about, on_contention=lambda kind, met: None).run_once()


def send_all(owner=W1):
    sent = 0
    while send_next(owner):
        sent += 1
    return sent


def is_due(delivery):
    return write(delivery, next_attempt_at=clock.now())


def newest():
    return Delivery.objects.latest("id")
