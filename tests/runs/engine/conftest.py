import uuid

import pytest

from runs import engines
from runs import lane as runs_lane
from tests.runs.engine import running
from tests.runs.engine.running import Lane
from work import supervise
from work.children import child


@pytest.fixture(params=running.WAYS)
def way(request, settings):
    """A run forks from a warm engine, or starts cold."""
    settings.ADE_WARM_ENGINES = request.param == "warm"
    return request.param


@pytest.fixture
def level(request, monkeypatch):
    """What stands around engines; without this, the most that the machine has."""
    monkeypatch.setattr(supervise, "sandbox_level", lambda: request.param)
    return request.param


@pytest.fixture(scope="session")
def witness_environment():
    """Made once, and shared by all processes of the tests."""
    return running.make_environment({"main.py": running.WITNESS})


@pytest.fixture
def storage(settings, tmp_path):
    """Of its own for each test: ids of runs come again."""
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def lane(workspace, storage, witness_environment, monkeypatch):
    # What is learnt of the builds of one test is not for the next, whose builds may have the same ids.
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
    """Submits runs for workers in processes of their own."""
    return Lane(workspace)


@pytest.fixture
def short(monkeypatch):
    """Who does not end when asked is killed soon."""
    monkeypatch.setitem(supervise.spawn.__kwdefaults__, "grace_seconds", 0.3)
    monkeypatch.setitem(engines.Zygote.spawn.__kwdefaults__, "grace_seconds", 0.3)


@pytest.fixture
def stuck_soon(short, monkeypatch):
    """And a keeper that does not answer is held for stuck soon."""
    for name in ("KILL_SECONDS", "KEEPER_SECONDS"):
        monkeypatch.setattr(child, name, 0.5)


@pytest.fixture
def token():
    """A name for the processes of one run; no longer than the kernel keeps of one."""
    return f"w{uuid.uuid4().hex[:14]}"
