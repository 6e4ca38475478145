"""Whether a sandbox is required, and which parts report that it is missing."""

import os

import pytest
from django.core.management import CommandError, call_command

from config.doctor import children_are_walled_off, limits_are_enforced
from config.findings import Level
from console import attention, situation
from tests.factories import UserFactory
from tests.work.supervised import Helper
from work import boots
from work.models import Worker
from work.processes import groups, hardening, supervise

pytestmark = pytest.mark.once


@pytest.fixture
def bare(monkeypatch):
    """A machine without bubblewrap."""
    monkeypatch.setattr(supervise, "sandbox_level", lambda: "limits")


def policy(monkeypatch, word):
    monkeypatch.setattr(supervise, "policy", word)


def test_a_child_is_not_started_without_the_sandbox_that_is_required(tmp_path):
    program = f"""
import os
os.environ["PATH"] = {str(tmp_path)!r}
from work.processes import supervise
for supervise.policy in ("preferred", "off", "required"):
    try:
        print(supervise.policy, supervise.run(["/bin/true"], cwd={str(tmp_path)!r}).returncode)
    except supervise.CannotStart as error:
        print(supervise.policy, error)
"""
    with Helper(program) as helper:
        lines = helper.process.stdout.read().splitlines()

    assert lines == ["preferred 0", "off 0", f"required {supervise.NO_SANDBOX}"]


def test_off_uses_none_though_it_is_there(monkeypatch):
    policy(monkeypatch, "off")

    assert supervise.level() == "limits"
    assert hardening.NO_SANDBOX in hardening.weaknesses()


@pytest.mark.django_db
def test_a_worker_does_not_start_without_the_sandbox_that_is_required(monkeypatch, bare):
    policy(monkeypatch, "required")

    with pytest.raises(CommandError, match="ADE_SANDBOX=required, but bubblewrap is not installed"):
        call_command("worker")

    assert not Worker.objects.exists()


def test_up_does_not_start_either(monkeypatch, bare, settings, tmp_path):
    policy(monkeypatch, "required")
    settings.VAR_DIR = tmp_path

    with pytest.raises(CommandError, match="ADE_SANDBOX=required, but bubblewrap is not installed"):
        call_command("up")


@pytest.mark.django_db
def test_a_worker_writes_down_what_is_weak_and_the_overview_says_it(monkeypatch, bare):
    policy(monkeypatch, "preferred")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    boots.register("w1", "boot1", {"run": 1})

    lines = attention.lines(situation.situation_of(situation.person_of(UserFactory())))

    assert Worker.objects.get().weaknesses == ["no_sandbox", "root"]
    messages = {line.word: line.message for line in lines}
    assert "Configurations run without a sandbox" in messages["no sandbox"]
    assert "It runs as root" in messages["root"]


@pytest.mark.django_db
def test_the_overview_says_nothing_of_a_worker_that_is_well_kept(monkeypatch):
    monkeypatch.setattr(hardening, "weaknesses", lambda: [])
    boots.register("w1", "boot1", {"run": 1})

    words = {line.word for line in attention.lines(situation.situation_of(situation.person_of(UserFactory())))}

    assert not words & {"no sandbox", "root"}


def test_doctor_fails_without_a_sandbox(monkeypatch, bare):
    found = children_are_walled_off()

    assert found.level == Level.FAIL
    assert "including its secret key and the files of all workspaces" in found.message


def test_doctor_names_the_limits_that_the_kernel_does_not_enforce(monkeypatch):
    monkeypatch.setattr(groups, "folder", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    as_root = limits_are_enforced()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    as_another = limits_are_enforced()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(groups, "folder", lambda: "/sys/fs/cgroup")
    with_groups = limits_are_enforced()

    assert as_root.level == Level.WARN
    assert "the processes of a run are only counted twice a second" in as_root.message
    assert "number of processes" not in as_another.message
    assert "number of processes" not in with_groups.message
