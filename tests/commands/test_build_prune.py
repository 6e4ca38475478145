import os
import time
from datetime import timedelta

import pytest

from builds import environments
from tests.builds.making import built, path_of, step
from tests.factories import BuildFactory, ConfigurationFactory

DAY = timedelta(days=1).total_seconds()
pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def host(settings, tmp_path):
    settings.VAR_DIR = tmp_path / "var"
    settings.ADE_CACHE_DIR = settings.VAR_DIR / "environments" / ".cache"
    settings.ADE_ENVIRONMENT_UNUSED_SECONDS = 7 * DAY
    settings.ADE_ENVIRONMENTS_BYTES = None


def stored(configuration, days, size=1000):
    """Create an environment of a build of this configuration that has been unused for this many days; return it as
    listed.
    """
    build = BuildFactory(configuration=configuration, status="ready")
    path = path_of(build)
    path.mkdir(parents=True)
    environments.write_marker(path, size_bytes=size)
    moment = time.time() - days * DAY
    os.utime(path, (moment, moment))
    return build


@pytest.fixture
def old(configuration):
    return stored(configuration, days=8)


@pytest.fixture
def young(workspace):
    return stored(ConfigurationFactory(workspace=workspace, name="letters", files={}), days=2, size=3000)


def test_what_is_unused_for_longer_than_the_setting_says_is_removed(manage, old, young):
    answer = manage("build", "prune", "--json")

    assert answer.code == 0
    (removed,) = answer.json["removed"]
    assert removed["used_at"]
    assert {**removed, "used_at": ""} == {
        "fingerprint": old.fingerprint,
        "configurations": ["Aster/invoices"],
        "size_bytes": 1000,
        "used_at": "",
    }
    told = {name: answer.json[name] for name in ("rehearsed", "in_use", "freed_bytes", "left_bytes")}
    assert told == {"rehearsed": False, "in_use": [], "freed_bytes": 1000, "left_bytes": 3000}
    assert [path_of(build).exists() for build in (old, young)] == [False, True]


def test_another_rule_may_be_given(manage, old, young):
    fingerprints = [
        row["fingerprint"] for row in manage("build", "prune", "--unused-days", 1, "--json").json["removed"]
    ]

    assert fingerprints == [old.fingerprint, young.fingerprint]


def test_so_may_how_much_all_may_take(manage, old, young):
    answer = manage("build", "prune", "--unused-days", 100, "--most-bytes", 3000, "--json").json

    assert [row["fingerprint"] for row in answer["removed"]] == [old.fingerprint]
    assert answer["left_bytes"] == 3000


def test_the_setting_for_how_much_is_heard_too(manage, settings, old, young):
    settings.ADE_ENVIRONMENTS_BYTES = 1

    assert len(manage("build", "prune", "--json").json["removed"]) == 2


def test_a_rehearsal_removes_nothing(manage, old, young):
    answer = manage("build", "prune", "--rehearse", "--json")

    assert answer.code == 0
    assert [row["fingerprint"] for row in answer.json["removed"]] == [old.fingerprint]
    assert (answer.json["rehearsed"], answer.json["freed_bytes"], answer.json["left_bytes"]) == (True, 1000, 3000)
    assert path_of(old).exists()


@pytest.mark.parametrize("how", [(), ("--rehearse",)])
def test_what_is_in_use_stays_and_is_told(manage, old, how):
    with environments.in_use(old.fingerprint):
        os.utime(path_of(old), (0, 0))
        answer = manage("build", "prune", *how, "--json").json

    assert answer["removed"] == []
    assert [row["configurations"] for row in answer["in_use"]] == [["Aster/invoices"]]
    assert path_of(old).exists()


def test_people_read_a_table_and_a_sum(manage, old, young):
    with environments.in_use(young.fingerprint):
        answer = manage("build", "prune", "--most-bytes", 0).out.splitlines()

    assert answer[0].split() == ["FINGERPRINT", "CONFIGURATIONS", "SIZE", "BYTES", "USED", "AT", "RESULT"]
    assert answer[1].split()[:3] == [old.fingerprint[:12], "Aster/invoices", "1000"]
    assert answer[1].endswith("removed")
    assert answer[2].endswith("kept: in use")
    assert answer[-1] == "0.0 MB freed, 0.0 MB kept."


def test_what_no_build_is_known_of_goes_too(manage):
    path = environments.path_of("f" * 64)
    path.mkdir(parents=True)
    os.utime(path, (0, 0))

    assert manage("build", "prune", "--json").json["removed"][0]["configurations"] == []
    assert not path.exists()


def test_where_nothing_was_ever_built(manage):
    answer = manage("build", "prune")

    assert (answer.code, answer.out.splitlines()) == (0, ["None.", "", "0.0 MB freed, 0.0 MB kept."])


@pytest.mark.parametrize("arguments", [("--unused-days", "-1"), ("--most-bytes", "1e9"), ("--unused-days", "soon")])
def test_what_is_no_number_is_refused(manage, arguments):
    assert manage("build", "prune", *arguments).code == 2


def test_what_cannot_be_removed_is_told(manage, old, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("builds.environments.os.rename", refuse)

    ended = manage("build", "prune", "--json")

    assert (ended.code, ended.error["code"]) == (1, "not_removed")
    assert "Operation not permitted" in ended.error["message"]


def test_an_environment_that_was_built_is_listed_with_its_size(manage):
    build = built(step())

    (row,) = manage("build", "prune", "--unused-days", 0, "--json").json["removed"]

    assert (row["fingerprint"], row["size_bytes"]) == (build.fingerprint, build.size_bytes)
