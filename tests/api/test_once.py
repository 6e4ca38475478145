import json

import pytest

from api import tokens
from api.models import KeptAnswer
from runs import lifecycle
from runs.models import Run
from tests.api.calling import Program
from tests.factories import ConfigurationFactory, DocumentFactory, MembershipFactory, events_of

pytestmark = pytest.mark.edge

KEY = {"Idempotency-Key": "5f0c7a52-3d0e"}


@pytest.fixture
def submit(program, configuration, document):
    def submit(headers=KEY, program=program, document=document):
        return program.post(f"/configurations/{configuration.pk}/runs", {"document_id": document.pk}, headers=headers)

    return submit


def test_who_asks_again_with_the_same_key_gets_the_same_answer(submit):
    first, again = submit(), submit()

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1


def test_the_answer_is_what_it_was_then(submit, olga):
    first = submit().json()
    lifecycle.cancel(Run.objects.get(pk=first["id"]), actor="olga")

    assert submit().json()["status"] == "queued"


def test_without_a_key_each_is_a_new_one(submit):
    ids = {submit(headers={}).json()["id"] for _ in range(2)}

    assert len(ids) == 2
    assert not KeptAnswer.objects.exists()


def test_a_key_is_for_one_request(submit, told, workspace):
    submit()

    assert told(submit(document=DocumentFactory(workspace=workspace))) == (422, "idempotency_key_reused")
    assert Run.objects.count() == 1


def test_a_key_is_for_one_path(submit, program, told, workspace, document):
    submit()
    other = ConfigurationFactory(workspace=workspace)

    answer = program.post(f"/configurations/{other.pk}/runs", {"document_id": document.pk}, headers=KEY)

    assert told(answer) == (422, "idempotency_key_reused")


def test_keys_of_others_are_others(submit, workspace, olga):
    otto = MembershipFactory(workspace=workspace, role="operator").user
    of_another = Program(tokens.issue(workspace, otto, "program", ["operate"], actor="olga")[1])
    another_of_hers = Program(tokens.issue(workspace, olga, "another", ["operate"], actor="olga")[1])

    ids = {submit(program=each).json()["id"] for each in (of_another, another_of_hers)} | {submit().json()["id"]}

    assert len(ids) == 3


def test_a_refusal_is_not_kept(submit, told, settings):
    settings.ADE_QUEUE_SIZE = 0
    assert told(submit()) == (429, "run_queue_full")
    settings.ADE_QUEUE_SIZE = 1

    assert submit().status_code == 201
    assert submit().status_code == 201
    assert Run.objects.count() == 1


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "é", "a\tb", "\x7f"])
def test_a_key_is_a_line_of_printable_characters(submit, told, key):
    assert told(submit(headers={"Idempotency-Key": key})) == (400, "invalid_request")
    assert not Run.objects.exists()


@pytest.mark.parametrize("key", ["x", "x" * 200, "a b"])
def test_a_key_is_whatever_else_the_program_likes(submit, key):
    assert submit(headers={"Idempotency-Key": key}).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_two_at_once_make_one_row(submit, threads):
    answers = threads.together([submit] * 4)

    assert {answer.status_code for answer in answers} == {201}
    assert len({json.loads(answer.content)["id"] for answer in answers}) == 1
    run = Run.objects.get()
    assert [event.kind for event in events_of(run)] == ["RUN_QUEUED"]


@pytest.mark.django_db(transaction=True)
def test_two_at_once_at_the_limit_get_the_one_place(submit, threads, settings):
    settings.ADE_QUEUE_SIZE = 1

    answers = threads.together([submit] * 4)

    assert {answer.status_code for answer in answers} == {201}
    assert Run.objects.count() == 1
