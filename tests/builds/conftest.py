import pytest

from runs import engines, handler
from tests.builds.wheels import put_wheel


@pytest.fixture
def host(settings, tmp_path):
    """A machine that has built nothing yet."""
    settings.VAR_DIR = tmp_path / "var"
    settings.ADE_CACHE_DIR = settings.VAR_DIR / "environments" / ".cache"
    settings.ADE_WARM_ENGINES = False
    # Forget the environments of other tests, whose rows had the same IDs.
    handler._environments.clear()
    yield settings.VAR_DIR
    engines.POOL.close()


@pytest.fixture
def index(host, tmp_path, monkeypatch):
    """A folder that replaces the package index for this machine."""
    folder, empty = tmp_path / "index", tmp_path / "empty"
    folder.mkdir()
    empty.mkdir()
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    # Without another index, only the folder is searched.
    monkeypatch.setenv("UV_DEFAULT_INDEX", empty.as_uri())
    put_wheel(folder, "apple", "1.0")
    return folder
