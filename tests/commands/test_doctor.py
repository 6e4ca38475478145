import os
import shutil
from collections import namedtuple
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core import checks
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from builds import environments, integrity
from config import VERSION, doctor
from config.database_checks import file_system_of, sqlite_mode
from config.findings import Level
from config.token_checks import demo_user_is_for_trying, warn_of_demo_user
from documents.models import Document
from tests.azurite import KEY, connection_string, storages, stored_files
from tests.breaches import much_has_happened, plant
from tests.documents.faulty import WAYS
from tests.factories import (
    DocumentFactory,
    ErrandFactory,
    FeedFactory,
    JobFactory,
    RunFactory,
    StageFactory,
    force_status,
    write,
)
from work import boots, clock, draining
from work.models import Worker

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def a_good_machine(settings, tmp_path, monkeypatch):
    """Start from a machine without problems; each test adds its own."""
    monkeypatch.setattr("work.processes.supervise.sandbox_level", lambda: "bubblewrap")
    settings.VAR_DIR, settings.MEDIA_ROOT = tmp_path, tmp_path / "media"
    settings.ADE_ALLOW_FAILPOINTS = False


@pytest.fixture
def worker():
    return boots.register("w1", "boot-1", {"errand": 2, "run": 1})


def check(manage, name):
    ended = manage("doctor", name, "--json")
    (row,) = (row for row in ended.json["checks"] if row["name"] == name)
    return row


def test_all_is_well_when_much_has_happened(manage):
    much_has_happened()
    for document in Document.objects.kept():
        write(document, file=default_storage.save("documents/file", ContentFile(b"x" * document.size_bytes)))

    ended = manage("doctor", "--json")

    assert ended.code == 0, [row for row in ended.json["checks"] if row["level"] == "FAIL"]
    assert ended.json["ok"]
    assert ended.json["skipped"] == []


def test_a_breach_is_named_with_its_rows_and_what_to_do(manage):
    runs = [RunFactory(status="succeeded") for _ in range(12)]
    for run in runs:
        plant(run, cancel_requested_at=clock.now())

    ended = manage("doctor", "--json")

    assert ended.code == 1
    assert not ended.json["ok"]
    (broken,) = (row for row in ended.json["checks"] if row["name"] == "invariant.an_accepted_cancel_of_a_run_binds")
    assert broken["level"] == "FAIL"
    assert broken["offenders"] == [{"kind": "run", "id": run.pk} for run in runs[:10]]
    assert "and more" in broken["found"]
    assert broken["advice"]


def test_people_read_a_line_for_each_check_and_a_sum(manage):
    run = RunFactory(status="succeeded")
    plant(run, cancel_requested_at=clock.now())

    ended = manage("doctor", "invariant.an_accepted")

    lines = ended.out.splitlines()
    assert [line.split()[:2] for line in lines if line[:4].strip()][-2:] == [
        ["FAIL", "invariant.an_accepted_cancel_of_a_run_binds"],
        ["3", "ok,"],
    ]
    assert f"Violated by: run {run.pk}." in ended.out
    assert lines[-1] == "3 ok, 0 with a warning, 1 failed."


def test_one_check_alone_needs_the_ground_it_stands_on(manage):
    names = [row["name"] for row in manage("doctor", "workers.alive", "--json").json["checks"]]

    assert names == ["database.answers", "database.migrations", "workers.alive"]


def test_a_check_that_does_not_exist(manage):
    ended = manage("doctor", "nonsense", "--json")

    assert (ended.code, ended.error["code"]) == (2, "usage")


def test_without_migrations_nothing_else_can_be_looked_at(manage):
    MigrationRecorder.Migration.objects.filter(app="runs").delete()

    ended = manage("doctor", "--json")

    assert ended.code == 1
    assert ended.json["checks"][-1]["name"] == "database.migrations"
    assert "runs.0001" in ended.json["checks"][-1]["found"]
    assert "workers.alive" in ended.json["skipped"]


def test_a_database_that_is_away(manage, monkeypatch):
    def away():
        raise doctor.Error("connection refused")

    monkeypatch.setattr("config.doctor.connection.ensure_connection", away)

    ended = manage("doctor", "--json")

    assert ended.code == 1
    assert ended.json["checks"][-1]["found"] == "connection refused"
    assert "DATABASE_URL" in ended.json["checks"][-1]["advice"]


def test_a_check_that_breaks_down_has_failed_and_keeps_no_other_from_being_made(manage, monkeypatch):
    def broken():
        raise doctor.Error("no such\ntable")

    monkeypatch.setattr("config.doctor.clocks_agree", broken)

    ended = manage("doctor", "--json")

    (row,) = (row for row in ended.json["checks"] if row["level"] == "FAIL")
    assert (row["name"], row["found"]) == ("database.clock", "no such table")
    assert ended.json["skipped"] == []


@pytest.mark.parametrize(("kind", "level"), [(checks.Warning, "warn"), (checks.Error, "FAIL"), (checks.Info, "ok")])
def test_what_django_says(manage, monkeypatch, kind, level):
    monkeypatch.setattr("django.core.checks.run_checks", lambda **options: [kind("Something\nis odd.", id="x.W1")])

    row = check(manage, "settings.checks")

    assert row["level"] == level
    assert level == "ok" or row["found"] == "x.W1: Something is odd."


def test_settings_for_tests_and_for_strangers(manage, settings):
    settings.ADE_ALLOW_FAILPOINTS, settings.DEBUG, settings.ALLOWED_HOSTS = True, True, ["localhost", "ade.example"]

    assert check(manage, "settings.tests")["level"] == "warn"
    assert check(manage, "settings.debug")["found"] == "DEBUG is true, and ALLOWED_HOSTS has ade.example"


@pytest.mark.parametrize(
    ("debug", "changes", "is_told"),
    [
        (False, {}, True),
        (True, {}, False),
        (False, {"is_active": False}, False),
        (False, {"is_superuser": False}, False),
    ],
)
def test_the_demo_user_is_told_where_others_reach_ade(db, settings, caplog, debug, changes, is_told):
    settings.DEBUG = debug
    User.objects.create_user("demo", **{"is_superuser": True} | changes)

    finding = demo_user_is_for_trying()
    warn_of_demo_user()

    assert (finding.level is Level.WARN) == is_told
    assert ("web.demo_user" in caplog.text) == is_told


def test_a_storage_that_is_no_directory(manage, settings):
    settings.MEDIA_ROOT.write_text("")

    assert check(manage, "storage.writable")["level"] == "FAIL"


def test_a_storage_that_cannot_be_written_to(manage, monkeypatch):
    def refused(**options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refused)

    row = check(manage, "storage.writable")

    assert row["level"] == "FAIL"
    assert "Read-only file system" in row["found"]


def test_the_check_of_the_storage_leaves_nothing_behind(manage, settings):
    check(manage, "storage.writable")

    assert os.listdir(settings.MEDIA_ROOT) == []


def test_a_container_that_can_be_used(manage, blobs):
    row = check(manage, "storage.writable")

    assert (row["level"], stored_files()) == ("ok", [])


def test_a_container_that_is_not_there(manage, blobs, settings):
    blobs.client.delete_container()

    row = check(manage, "storage.writable")

    assert row["level"] == "FAIL"
    assert row["found"].endswith(f"in the container '{settings.ADE_AZURE_CONTAINER}': the container does not exist")
    assert "create a missing container" in row["advice"]
    blobs.prepare()


def test_a_container_that_strangers_can_read(manage, blobs):
    blobs.client.set_container_access_policy(signed_identifiers={}, public_access="container")

    row = check(manage, "storage.writable")

    assert (row["level"], "strangers can read the container" in row["found"]) == ("FAIL", True)


@pytest.mark.parametrize("way", WAYS)
def test_a_blob_service_that_does_not_work(manage, settings, monkeypatch, way):
    monkeypatch.setattr("documents.blobs.READ_SECONDS", 0.3)
    settings.ADE_STORAGE = "azure"
    with WAYS[way]() as address:
        settings.STORAGES = storages(connection_string(address), "documents")

        ended = manage("doctor", "storage.writable", "--json")
        default_storage.service_client.close()

    (row,) = (row for row in ended.json["checks"] if row["name"] == "storage.writable")
    assert row["level"] == "FAIL"
    assert "in the container 'documents': the blob service " in row["found"]
    assert KEY not in ended.out


@pytest.mark.parametrize(("free", "level"), [(10**10, "ok"), (5 * 10**8, "warn"), (10**7, "FAIL")])
def test_free_disk(manage, monkeypatch, free, level):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, free))

    assert check(manage, "storage.space")["level"] == level


@pytest.mark.parametrize(("off", "level"), [(0, "ok"), (4, "ok"), (60, "warn"), (-60, "warn")])
def test_a_clock_that_is_off(manage, monkeypatch, off, level):
    now = clock.now
    monkeypatch.setattr("work.clock.now", lambda: now() - timedelta(seconds=off))

    row = check(manage, "database.clock")

    assert row["level"] == level
    assert off == 0 or f"by {off:+}." in row["found"]


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(("kind", "level"), [("ext4", "ok"), ("nfs4", "FAIL"), (None, "ok")])
def test_sqlite_on_a_network_file_system(manage, monkeypatch, kind, level):
    monkeypatch.setattr("config.database_checks.file_system_of", lambda path: kind)

    assert check(manage, "database.sqlite_file")["level"] == level


@pytest.mark.only_on("sqlite")
def test_sqlite_without_foreign_keys(manage, monkeypatch):
    class Cursor:
        def execute(self, sql):
            return self

        def fetchone(self):
            return ("delete",)

        __enter__ = __exit__ = lambda self, *error: self

    assert check(manage, "database.sqlite_mode")["level"] == "ok"
    monkeypatch.setattr("config.database_checks.connection", type("Fake", (), {"cursor": Cursor}))

    assert sqlite_mode().level == "FAIL"


@pytest.mark.only_on("postgresql")
def test_another_isolation_level(manage):
    assert check(manage, "database.isolation")["level"] == "ok"

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL default_transaction_isolation = 'repeatable read'")

    row = check(manage, "database.isolation")
    assert (row["level"], row["found"]) == ("warn", "transactions are repeatable read")


def test_work_that_waits_for_a_worker(manage):
    assert check(manage, "workers.alive")["level"] == "warn"
    RunFactory()
    RunFactory()

    row = check(manage, "workers.alive")

    assert (row["level"], row["found"]) == ("FAIL", "no worker is alive; waiting: 2 runs")


def test_a_stage_waits_only_while_its_job_is_under_way(manage):
    stage = StageFactory(status="READY")
    assert check(manage, "workers.alive")["found"] == "no worker is alive; waiting: 1 stage"
    force_status(stage.job, "FAILED")

    row = check(manage, "workers.alive")

    assert (row["level"], row["found"]) == ("warn", "no worker is alive")


def test_a_worker_that_is_alive(manage, worker):
    ErrandFactory()

    row = check(manage, "workers.alive")

    assert (row["level"], row["found"]) == ("ok", "1 alive; waiting: 1 errand")


def test_workers_that_all_drain(manage, worker):
    draining.drain(worker, actor="olga")
    ErrandFactory()

    row = check(manage, "workers.alive")

    said = "1 alive, but all of them are draining and take no work; waiting: 1 errand"
    assert (row["level"], row["found"]) == ("warn", said)
    boots.register("w2", "boot2", {"run": 1})
    assert check(manage, "workers.alive")["level"] == "ok"
    assert check(manage, "workers.slots")["found"] == "no worker has a thread for: 1 errand"


@pytest.mark.parametrize("column", ["heartbeat_at", "stopped_at"])
def test_a_worker_that_is_not(manage, worker, column):
    Worker.objects.update(**{column: clock.now() - timedelta(minutes=5)})

    assert check(manage, "workers.alive")["found"] == "no worker is alive"


def test_much_that_waits_is_not_counted_to_the_end(manage, worker, monkeypatch):
    monkeypatch.setattr(doctor, "COUNTED", 2)
    for _ in range(3):
        ErrandFactory()

    assert check(manage, "workers.alive")["found"] == "1 alive; waiting: over 2 errands"


def test_a_job_needs_no_slot(manage, worker):
    """Only its stages need a slot; every worker moves the job itself."""
    JobFactory()
    assert check(manage, "workers.alive")["found"] == "1 alive; waiting: 1 document processing job"

    assert check(manage, "workers.slots")["level"] == "ok"


def test_work_that_no_worker_has_a_slot_for(manage, worker):
    ErrandFactory()
    assert check(manage, "workers.slots")["level"] == "ok"
    Worker.objects.update(lanes={"errand": 0, "run": 3})

    row = check(manage, "workers.slots")

    assert (row["level"], row["found"]) == ("warn", "no worker has a thread for: 1 errand")


def test_a_worker_of_another_version(manage, worker, settings):
    assert check(manage, "workers.version")["level"] == "ok"
    settings.ADE_VERSION = "9.9"

    row = check(manage, "workers.version")

    assert row["level"] == "warn"
    assert row["found"].endswith(f"runs {VERSION}; this is 9.9")


def test_a_document_without_its_job_is_found(manage):
    document = DocumentFactory()

    row = check(manage, "invariant.a_document_stands_where_its_last_job_stands")

    assert row["offenders"] == [{"kind": "document", "id": document.pk}]


def test_uv_is_asked_for_its_version(manage):
    row = check(manage, "builds.uv")

    assert row["level"] == "ok"
    assert row["found"].startswith("uv ")


def test_without_uv_nothing_is_built(manage, monkeypatch, tmp_path):
    monkeypatch.setattr("builds.uv.program", lambda: str(tmp_path / "uv"))

    row = check(manage, "builds.uv")

    assert row["level"] == "FAIL"
    assert "make setup" in row["advice"]


@pytest.mark.parametrize(("level", "found"), [("bubblewrap", "ok"), ("limits", "FAIL")])
def test_whether_engines_are_walled_off(manage, monkeypatch, level, found):
    monkeypatch.setattr("work.processes.supervise.sandbox_level", lambda: level)

    row = check(manage, "builds.sandbox")

    assert row["level"] == found
    assert (row["advice"] != "") == (found == "FAIL")


@pytest.mark.parametrize("engine", ["rapidocr", "tesseract", None])
def test_what_reads_scans_is_told(manage, monkeypatch, engine):
    monkeypatch.setattr("ade_extractor.ocr_engine", lambda: engine)

    row = check(manage, "documents.ocr")

    assert row["level"] == "ok"
    assert (engine or "install requirements/ocr.txt") in row["found"]


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /data rw,relatime shared:2 - nfs4 server:/export rw
31 30 0:26 / /data/local rw,relatime - xfs /dev/sdb1 rw
32 22 0:27 / /with\\040space rw - cifs //server/share rw
33 22 0:28 / /twice rw - ext4 /dev/sdc rw
34 33 0:29 / /twice rw - nfs server:/x rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/database", "ext4"),
        ("/data/ade.sqlite3", "nfs4"),
        ("/data/local/ade.sqlite3", "xfs"),
        ("/with space/ade.sqlite3", "cifs"),
        ("/twice/ade.sqlite3", "nfs"),
    ],
)
def test_the_file_system_of_a_path(path, kind):
    assert file_system_of(path, MOUNTS) == kind


def test_this_machine_can_be_asked(tmp_path):
    assert file_system_of(str(tmp_path))


def test_feeds_that_have_been_failing_for_long_are_named(manage):
    now = clock.now()
    columns = {
        "failures": 3,
        "failing_since": now,
        "last_error": "expected a feed, found a page",
        "created_at": now - timedelta(days=9),
    }
    silent, never, lately, still, well = (FeedFactory(title=f"Feed {n}") for n in range(5))
    write(silent, **columns, succeeded_at=now - timedelta(days=4))
    write(never, **columns)
    write(lately, **columns, succeeded_at=now - timedelta(days=2))
    write(still, **columns, paused_at=now, paused_by="olga")
    write(well, created_at=now - timedelta(days=9), succeeded_at=now - timedelta(days=4))

    found = check(manage, "feeds.answering")

    assert found["level"] == "warn"
    assert found["offenders"] == [{"kind": "feed", "id": feed.pk} for feed in (silent, never)]
    assert f"{silent.pk} (Feed 0), {never.pk} (Feed 1)" in found["found"]
    assert "feed show" in found["advice"]


def test_of_many_feeds_that_fail_some_are_named(manage):
    for _ in range(12):
        write(
            FeedFactory(),
            failures=1,
            failing_since=clock.now(),
            last_error="no",
            created_at=clock.now() - timedelta(days=9),
        )

    found = check(manage, "feeds.answering")

    assert len(found["offenders"]) == 10
    assert found["found"].endswith(" and more")


def test_feeds_that_answer_are_well(manage):
    FeedFactory()

    assert check(manage, "feeds.answering")["level"] == "ok"


@pytest.fixture
def sealed():
    """An environment as the builder leaves it, without the parts that only matter when it is started."""
    with environments.staging("f" * 64) as staged:
        (staged.home / "lib").mkdir(parents=True)
        (staged.home / "lib" / "six.py").write_text("VERSION = 1\n")
        environments.seal(staged)
        environments.publish(staged, "f" * 64)
    return environments.path_of("f" * 64)


def test_environments_as_they_were_made_are_well(manage, sealed):
    assert check(manage, "builds.environments")["found"] == "1 environments match their seals, by sizes and times"
    answer = manage("doctor", "builds.environments", "--thorough", "--json").json
    assert "1 environments match their seals, by all checksums" in [row["found"] for row in answer["checks"]]


def test_a_changed_file_of_an_environment_is_named(manage, sealed):
    file = sealed / "lib" / "six.py"
    before = file.stat()
    file.chmod(0o644)
    file.write_text("VERSION = 6\n")
    file.chmod(before.st_mode)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    row = check(manage, "builds.environments")

    assert row["level"] == "FAIL"
    assert (
        "1 of 1 environments were changed after they were built: ffffffffffff: lib/six.py was changed" in row["found"]
    )


def test_a_file_that_changed_without_a_trace_is_found_by_its_checksum(manage, sealed):
    """Bit rot on a disk: the seal has the same times as the file."""
    seal = environments.read_seal(sealed.name)
    entry = seal["lib/six.py"]
    integrity.write_seal(
        environments.root() / environments.SEALS / f"{sealed.name}.json",
        seal | {"lib/six.py": entry._replace(sha256="0" * 64)},
    )

    assert check(manage, "builds.environments")["level"] == "ok"
    ended = manage("doctor", "builds.environments", "--thorough")
    assert ended.code == 1
    assert "lib/six.py was changed" in ended.out


def test_an_environment_without_a_seal_is_worth_a_look(manage, sealed):
    (environments.root() / environments.SEALS / f"{sealed.name}.json").unlink()

    assert check(manage, "builds.environments")["level"] == "warn"
