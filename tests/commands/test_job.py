import pytest

from tests.factories import JobRunFactory

pytestmark = pytest.mark.django_db


def test_list_chooses(manage):
    running, ended = JobRunFactory(job_name="feeds"), JobRunFactory(status="success")

    def ids(*arguments):
        return {row["id"] for row in manage("job", "list", *arguments, "--json").json["job_runs"]}

    assert ids() == {running.pk, ended.pk}
    assert ids("--status", "success") == {ended.pk}
    assert ids("--job", "feeds") == {running.pk}
    assert ids("--before", ended.pk) == {running.pk}


def test_list_is_a_table_for_people(manage):
    JobRunFactory(job_name="feeds")

    assert "feeds" in manage("job", "list").out
