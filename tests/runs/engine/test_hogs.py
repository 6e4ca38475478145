"""Runs that take all they can get, with the default limits: they are ended, and their neighbours keep running."""

import multiprocessing
import os
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings as here

from runs import scratch
from tests.runs.engine.running import assert_no_process_is_left, error_of, needs_bubblewrap, took, warm_only
from work.processes import usage

pytestmark = [pytest.mark.once, pytest.mark.soak, pytest.mark.usefixtures("way"), warm_only, needs_bubblewrap]

GB = 1 << 30
HOG = "hog"
HOGS = {
    "memory": f"family:10x{GB}",
    "processes": "multiply",
    "disk": f"disk:{10 * GB}x",
}
# The processor seconds of the neighbour's work.
BESIDE_SECONDS = 8.0


def watch(hog, root, folder, answer):
    """When a run goes over its limit, and when its processes are gone: as a process of its own sees it, every 20 ms if
    it gets the processor.
    """

    def has_more():
        if hog == "disk":
            return sum(size or 0 for size in usage._sizes_in(folder)) > here.ADE_RUN_DISK_BYTES
        sizes = [usage._size_of(pid) for pid in usage.below(root)]
        if hog == "processes":
            return sum(threads for threads, _ in sizes) > here.ADE_RUN_PROCESSES
        return sum(pages for _, pages in sizes) * os.sysconf("SC_PAGE_SIZE") > here.ADE_ENGINE_MEMORY_BYTES

    while not has_more():
        time.sleep(0.02)
    over_at = time.time()
    while [pid for pid in usage.below(root) if usage._size_of(pid)[1] and is_hog(pid)]:
        time.sleep(0.02)
    answer.put((over_at, time.time()))


def is_hog(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == HOG
    except OSError:
        return False


def work(seconds, answer):
    """Work for this many processor seconds and report how long it really took."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() - used < seconds:
        sum(range(1000))
    answer.put(time.monotonic() - began)


@pytest.mark.parametrize("hog", HOGS)
def test_a_hog_is_ended_and_its_neighbour_goes_on(lane, hog, settings):
    # No worker renews the lease here, and 4 GB take long to write.
    settings.ADE_LEASE_SECONDS = 600
    fork = multiprocessing.get_context("fork")
    answer, moment = fork.Queue(), fork.Queue()
    neighbour = fork.Process(target=work, args=(BESIDE_SECONDS, answer))
    watcher = fork.Process(target=watch, args=(hog, os.getpid(), str(scratch.root()), moment))
    neighbour.start()
    watcher.start()

    run = lane.execute(f"name:{HOG}", HOGS[hog])

    over_at, gone_at = moment.get(timeout=60)
    late = run.finished_at.timestamp() - over_at
    watcher.join()
    share = BESIDE_SECONDS / answer.get()
    neighbour.join()
    sys.stdout.write(
        f"{hog}: gone {gone_at - over_at:.2f} s after it was over its limit, cleared away and written {late:.2f} s"
        f" after, {took(run):.2f} s after its start;"
        f" its neighbour had {share:.2f} of its speed at a load of {os.getloadavg()[0]:.1f}\n"
    )
    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert took(run) < 60
    # Two seconds on a machine that does nothing else.
    assert gone_at - over_at < 20
    assert share > 0.3
    assert_no_process_is_left()
    lane.assert_well(run.input_document)
