import pytest

from api.ids import MOST

pytestmark = pytest.mark.edge

NONE_AT_ALL = [
    "0",
    "-1",
    "01",
    "+1",
    "1.0",
    "1e3",
    "x",
    "%00",
    "1%00",
    "٣",
    "１",
    "%D9%A3",
    "6f1c2f4e-8f0b-4c57-9a0e-3f3f1a2b4c5d",
    str(MOST + 1),
    "9" * 5000,
    "1%0a",
    "..",
    "%2e%2e",
]


@pytest.mark.parametrize("id", NONE_AT_ALL, ids=lambda id: id[:12].encode("unicode_escape").decode())
def test_what_is_no_id_is_not_there(program, told, id):
    assert told(program.get(f"/api/v1/runs/{id}")) == (404, "not_found")


@pytest.mark.parametrize("id", [2**31 - 1, 2**31, 2**32, MOST])
def test_an_id_of_any_size_that_a_database_has_is_only_not_there(program, told, id):
    assert told(program.get(f"/api/v1/runs/{id}")) == (404, "not_found")
    assert told(program.post(f"/configurations/{id}/runs", {"document_id": id})) == (404, "not_found")
    assert told(program.get(f"/api/v1/runs?configuration_id={id}")) == (404, "not_found")


@pytest.mark.parametrize("id", ["0", "-1", "1.5", "x", str(MOST + 1), "9" * 5000, "", "1,2", "null", "true"])
def test_a_filter_takes_ids_only(program, told, id):
    assert told(program.get(f"/api/v1/runs?configuration_id={id}")) == (400, "invalid_request")


@pytest.mark.parametrize("digits", ["٣", "１"])
def test_a_filter_takes_the_digits_of_ids_only(program, told, digits):
    assert told(program.get("/api/v1/runs", query_params={"configuration_id": digits})) == (400, "invalid_request")
