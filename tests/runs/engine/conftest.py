import uuid

import pytest

from runs import engines
from runs import handler as runs_lane
from tests.runs.engine import running
from tests.runs.engine.running import Lane
from work.processes import child, supervise


@pytest.fixture(params=running.WAYS)
def way(request, settings):
    """Run the test with warm engines and with cold ones."""
    settings.ADE_WARM_ENGINES = request.param == "warm"
    return request.param


@pytest.fixture
def level(request, monkeypatch):
    """The sandbox level of engines; without this fixture, the strictest that the machine offers."""
    monkeypatch.setattr(supervise, "sandbox_level", lambda: request.param)
    return request.param


@pytest.fixture(scope="session")
def witness_environment():
    """Built once, and shared by all test processes."""
    return running.make_environment({"main.py": running.WITNESS})


@pytest.fixture
def storage(settings, tmp_path):
    """A storage for each test: run IDs repeat across tests."""
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def lane(workspace, storage, witness_environment, monkeypatch):
    # Forget the builds of other tests, which may have the same IDs.
    monkeypatch.setattr(engines.POOL, "_hopeless", {})
    monkeypatch.setattr(runs_lane, "_environments", {})
    yield Lane(workspace)
    desk = engines.POOL._desk
    try:
        running.assert_no_directory_is_left()
    finally:
        engines.POOL.close()
    assert desk is None or not desk.path.exists()
    running.assert_no_process_is_left()


@pytest.fixture
def witnesses(transactional_db, workspace, witness_environment):
    """Submits runs for workers in other processes."""
    return Lane(workspace)


@pytest.fixture
def short(monkeypatch):
    """Kill processes soon if they do not end on request."""
    monkeypatch.setitem(supervise.spawn.__kwdefaults__, "grace_seconds", 0.3)
    monkeypatch.setitem(engines.ForkServer.spawn.__kwdefaults__, "grace_seconds", 0.3)


@pytest.fixture
def stuck_soon(short, monkeypatch):
    """Regard a keeper that does not answer as stuck soon."""
    for name in ("KILL_SECONDS", "KEEPER_SECONDS"):
        monkeypatch.setattr(child, name, 0.5)


@pytest.fixture
def token():
    """A name for the processes of one run, within the kernel's limit of 15 bytes."""
    return f"w{uuid.uuid4().hex[:14]}"
