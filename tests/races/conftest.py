import pytest

from tests.stepping import Step
from work import failpoints, lifecycle
from work.sql import portable, returning


@pytest.fixture
def step_at(threads, monkeypatch):
    """Hold up the first thread that reaches a failpoint: `at = step_at("run.finish.before_commit")`."""
    steps = []

    def put(name):
        assert name.replace("errand", "run") in failpoints.NAMES
        steps.append(Step())
        monkeypatch.setitem(failpoints._armed, name, steps[-1])
        return steps[-1]

    yield put
    # Release the steps before the fixture of the threads waits for them.
    for step in steps:
        step.go_on()


@pytest.fixture(
    params=[
        pytest.param("fast", marks=pytest.mark.only_on(*returning.FAST_VENDORS)),
        pytest.param("portable", marks=pytest.mark.long),
    ]
)
def writer(request, monkeypatch):
    """Run the test with both writers of the lifecycle; "portable" is for databases that we have no server of."""
    monkeypatch.setattr(lifecycle, "_writer", lambda: {"fast": returning, "portable": portable}[request.param])
