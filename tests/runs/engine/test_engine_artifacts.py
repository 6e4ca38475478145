"""Artifacts are kept only if they are regular, complete files: all or none, and never from a run that was too late."""

import errno
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from runs import artifacts
from runs import handler as runs_lane
from runs import lifecycle as runs
from runs.models import Artifact, Run
from tests.factories import expire_lease, told
from tests.runs.engine.running import OWNER, assert_nothing_is_kept_of_what_failed, each_level, error_of, files_below
from work import recovery
from work.work_types import all_work_types

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]

NOBODY = 65534


@pytest.mark.parametrize(
    ("deed", "failure", "words"),
    [
        ("symlink:a=/etc/passwd", "ENGINE_FAILED", "Artifact 'a' cannot be stored: it is a symbolic link."),
        ("symlink:a=input.json", "ENGINE_FAILED", "cannot be stored: it is a symbolic link."),
        ("symlink:a=nowhere", "ENGINE_FAILED", "cannot be stored: it is a symbolic link."),
        ("symlink:folder=/etc", "ENGINE_FAILED", "cannot be stored: it is a symbolic link."),
        ("hardlink:a", "ENGINE_FAILED", "it has 2 names, and a hard link may lead anywhere."),
        ("fifo:a", "ENGINE_FAILED", "Artifact 'a' cannot be stored: it is not a regular file."),
        ("socket:a", "ENGINE_FAILED", "Artifact 'a' cannot be stored: "),
        (
            "bad_name:\\xff\\xfe",
            "ENGINE_FAILED",
            "The name of an artifact must be printable and at most 255 characters long, not ",
        ),
        ("bad_name:a\\nb", "ENGINE_FAILED", "The name of an artifact must be printable"),
        ("bad_name:\\xe2\\x80\\xae", "ENGINE_FAILED", "The name of an artifact must be printable"),
        ("deep:12", "LIMIT_EXCEEDED", "at most 8 folders deep"),
        ("deep:1200", "LIMIT_EXCEEDED", "at most 8 folders deep"),
        ("many_files:1001", "LIMIT_EXCEEDED", "this one has more than 1000."),
        (
            "sparse:a=1000000000000",
            "LIMIT_EXCEEDED",
            "step act: exceeded its limit of file size: [Errno 27] File too large",
        ),
        ("artifact:../outside=x", "STEP_FAILED", "Invalid artifact name"),
        ("artifact:/tmp/outside=x", "STEP_FAILED", "Invalid artifact name"),
        ("artifact:-rf=x", "STEP_FAILED", "Invalid artifact name"),
    ],
    ids=lambda value: str(value).partition(":")[0] if ":" in str(value)[:30] else None,
)
def test_what_is_no_plain_file_below_the_artifacts_fails_the_run_and_nothing_is_kept(lane, deed, failure, words):
    run = lane.execute("bad_name:0", deed)

    assert error_of(run)[:2] == ("failed", failure)
    assert words in run.error_message
    assert "ARTIFACT_PUBLISHED" not in told(run)
    lane.assert_well(run.input_document)


@pytest.mark.parametrize("target", ["/etc", "input.json", "nowhere"])
def test_a_link_in_the_place_of_the_artifacts_is_not_followed(lane, target):
    run = lane.execute(f"replace_artifacts:{target}")

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    assert "'artifacts' is not a readable directory: " in run.error_message


@pytest.mark.parametrize("level", ["limits"], indirect=True)
def test_a_device_is_not_read(lane, level):
    run = lane.execute("device:a")

    assert run.status == "failed"
    assert "it is not a regular file" in run.error_message or "Operation not permitted" in run.error_message
    lane.assert_well()


@each_level
@pytest.mark.parametrize("deed", ["swap_directory", "move_directory"])
def test_no_link_in_the_place_of_the_directory_is_followed(lane, level, tmp_path, deed, way):
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "secret.txt").write_text("of somebody else")

    run = lane.execute(f"{deed}:{tmp_path}")

    # In bubblewrap, a cold start cannot even move the directory.
    bound = (way, level) == ("cold", "bubblewrap")
    assert error_of(run)[:2] == ("failed", "STEP_FAILED" if bound else "ENGINE_FAILED")
    assert bound or re.search(
        r"is not a readable directory: |The working directory of the run is missing\.", run.error_message
    )
    assert not Artifact.objects.exists()
    assert (tmp_path / "artifacts" / "secret.txt").exists()
    lane.assert_well()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody who is not")
@pytest.mark.parametrize(
    ("locked", "mode", "words"),
    [
        ("artifacts", 0, "'artifacts' is not a readable directory: Permission denied"),
        ("artifacts", 0o400, "Artifact 'folder' cannot be stored: Permission denied"),
        ("artifacts/folder", 0, "Artifact 'folder' cannot be stored: Permission denied"),
        ("artifacts/folder/file", 0, "Artifact 'folder/file' cannot be stored: Permission denied"),
    ],
)
def test_what_may_not_be_read_is_named(locked, mode, words):
    """Root may read everything; most workers do not run as root."""
    directory = Path(tempfile.mkdtemp())
    try:
        os.chown(directory, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        (directory / "artifacts" / "folder").mkdir(parents=True)
        (directory / "artifacts" / "folder" / "file").write_text("x")
        (directory / locked).chmod(mode)

        with pytest.raises(artifacts.BadArtifact, match=words):
            artifacts.look(directory, None)
    finally:
        os.seteuid(0)
        shutil.rmtree(directory)


def test_all_artifacts_together_have_a_limit(lane, monkeypatch):
    monkeypatch.setattr(artifacts, "MOST_BYTES", 1 << 20)

    run = lane.execute("artifact:a.txt=x", f"sparse:b={2 << 20}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "at most 1000 artifacts of 1,048,576 bytes in total; this one has 2,097,153 bytes" in run.error_message


def test_what_was_checked_is_what_is_kept_though_its_name_leads_elsewhere_by_then(lane, monkeypatch, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of somebody else")
    check, swapped = artifacts._check_file, []

    def check_and_swap(descriptor, path, found):
        check(descriptor, path, found)
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        name.unlink()
        name.symlink_to(secret)
        swapped.append(name)

    monkeypatch.setattr(artifacts, "_check_file", check_and_swap)
    run = lane.execute("artifact:a.txt=mine")

    assert swapped
    assert error_of(run) == ("succeeded", "", "")
    assert Path(default_storage.path(run.artifacts.get().file)).read_text() == "mine"


def test_a_storage_that_fails_half_way_keeps_nothing(lane, monkeypatch):
    class Full(artifacts.HashingFile):
        def chunks(self, chunk_size=None):
            yield b"half"
            if self.name == "b.txt":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(artifacts, "HashingFile", Full)
    run = lane.execute("artifact:a.txt=first", "artifact:b.txt=second")
    monkeypatch.undo()

    assert run.status == "failed"
    assert "No space left on device" in run.error_message


def test_the_artifacts_of_a_claim_that_came_too_late_are_nobodys(lane):
    run = lane.submit("field:a=1", "artifact:a.txt=x")
    claim = runs.claim_next_run(OWNER)
    results = runs_lane.do(claim)
    assert files_below(Path(default_storage.path(f"runs/{run.pk}"))) == ["1/0001"]
    expire_lease(Run.objects.get(pk=run.pk))
    assert recovery.rescue_expired(all_work_types(), "w2@here:102:boot2") == 1

    assert not runs_lane.succeed(claim, results)

    run.refresh_from_db()
    assert error_of(run)[:2] == ("failed", "PROCESS_TERMINATED")
    assert_nothing_is_kept_of_what_failed(run)
    assert not Artifact.objects.exists()
    lane.assert_well(run.input_document)


def test_the_artifacts_of_a_run_that_was_cancelled_meanwhile_are_nobodys(lane):
    run = lane.submit("field:a=1", "artifact:a.txt=x")
    claim = runs.claim_next_run(OWNER)
    results = runs_lane.do(claim)
    assert runs.cancel(run, actor="olga") == "running"

    assert not runs_lane.succeed(claim, results)

    run.refresh_from_db()
    assert run.status == "cancelled"
    assert_nothing_is_kept_of_what_failed(run)


@each_level
def test_a_thousand_artifacts_are_kept(lane, level):
    began = time.monotonic()
    run = lane.execute("many_files:1000")

    assert error_of(run) == ("succeeded", "", "")
    assert run.artifacts.count() == 1000
    assert time.monotonic() - began < 300
