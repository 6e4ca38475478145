import pytest

from tests.engines import Witness, create_site


@pytest.fixture
def witness():
    witness = Witness()
    yield witness
    witness.end()


@pytest.fixture
def unbuilt(programs, witness, settings, tmp_path):
    """An installation whose configuration has no build yet."""
    settings.VAR_DIR = tmp_path / "var"
    settings.MEDIA_ROOT = settings.VAR_DIR / "media"
    return create_site(programs, witness)


@pytest.fixture
def site(unbuilt):
    """An installation with a ready environment."""
    unbuilt.build()
    return unbuilt


# The way engines start does not depend on the database.
@pytest.fixture(params=["warm", pytest.param("cold", marks=pytest.mark.once)])
def engines(request):
    """The environment variables of a worker for this way to start engines."""
    return {"ADE_WARM_ENGINES": str(request.param == "warm").lower()}
