import json
from collections import Counter

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from api import naming, openapi
from api.errors import CODES
from config.api import api
from tests.api.described import DESCRIPTION, OPERATIONS, validator
from webhooks.models import Topic

pytestmark = pytest.mark.edge

CHANGING = {"post", "put", "patch", "delete"}
USUAL = {"400", "401", "403", "404", "405", "413", "415", "429", "500", "503", "507"}


@pytest.fixture(params=OPERATIONS, ids=lambda each: f"{each[1].upper()} {each[0]}")
def operation(request):
    return request.param[1:]


def test_it_is_valid_openapi_3_1():
    assert DESCRIPTION["openapi"] == "3.1.0"

    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(DESCRIPTION)] == []


def test_every_reference_leads_somewhere():
    for reference in references(DESCRIPTION):
        place = DESCRIPTION
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from references(each)


def test_every_operation_has_a_name_of_its_own():
    names = Counter(told["operationId"] for _, _, told in OPERATIONS)

    assert [name for name, count in names.items() if count > 1] == []
    assert all(name.isidentifier() for name in names)


def test_every_tag_says_what_it_is():
    used = {tag for _, _, told in OPERATIONS for tag in told["tags"]}

    assert used == {tag["name"] for tag in DESCRIPTION["tags"]}
    assert used <= set(openapi.TAGS)


def test_an_operation_says_all_that_it_may_answer(operation):
    _, told = operation

    assert told["summary"]
    assert set(told["responses"]) >= USUAL
    assert [status for status in told["responses"] if status < "400"]
    for status, answer in told["responses"].items():
        if status >= "400":
            assert answer == {"$ref": f"#/components/responses/Problem{status}"}
        else:
            assert "X-Request-ID" in answer["headers"]


def test_an_operation_says_who_may_come(operation):
    method, told = operation

    ways = [way for way in told["security"] if "token" in way]
    assert ways == [] or ways[0]["token"][0] in ("read", "operate", "admin", "installation")
    sessions = [way for way in told["security"] if "session" in way]
    assert all(("csrf" in way) == (method in CHANGING) for way in sessions)


def test_what_creates_takes_a_key(operation):
    method, told = operation
    takes_a_key = {"$ref": "#/components/parameters/IdempotencyKey"} in told["parameters"]

    assert takes_a_key == (method == "post" and "422" in told["responses"])
    assert takes_a_key or "201" not in told["responses"]


def test_nothing_is_answered_that_a_spreadsheet_would_calculate(operation):
    """The content of documents and runs is only sent as JSON, as text, or as the original file."""
    _, told = operation
    types = {
        type for status, answer in told["responses"].items() if status < "400" for type in answer.get("content", {})
    }

    written = {"application/json", "application/jsonl", "text/plain", "text/event-stream"}
    assert types <= written | {"application/xml", "application/zip", "*/*"}


def test_examples_are_as_their_schemas_say(operation):
    _, told = operation
    bodies = [told["requestBody"]["content"]] if "requestBody" in told else []
    bodies += [answer["content"] for answer in told["responses"].values() if "content" in answer]

    for content in bodies:
        for kind, each in content.items():
            assert kind != "application/json" or "example" in each
            if "example" in each:
                assert [str(error) for error in validator(each["schema"]).iter_errors(each["example"])] == []


def test_each_code_has_an_example_with_its_status():
    for code, (status, meaning) in CODES.items():
        told = DESCRIPTION["components"]["responses"][f"Problem{status}"]["content"]["application/json"]

        assert told["examples"][code]["summary"] == meaning
        validator(told["schema"]).validate(told["examples"][code]["value"])


@pytest.mark.django_db
def test_anybody_may_read_it_and_asks_again_cheaply(client):
    answer = client.get("/api/v1/openapi.json")

    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(DESCRIPTION))
    again = client.get("/api/v1/openapi.json", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert answer["Cache-Control"] == "no-cache"


def test_it_is_made_once():
    assert api.get_openapi_schema() is api.get_openapi_schema()


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/openapi.json", "/api/docs"])
def test_the_description_is_only_read(client, path):
    assert client.post(path).status_code == 405


@pytest.mark.parametrize(
    ("function", "tag", "reads", "lists", "expected"),
    [
        ("submit", "runs", False, False, "submitRun"),
        ("show", "runs", True, False, "showRun"),
        ("list_runs", "runs", True, True, "listRuns"),
        ("list_", "runs", True, True, "listRuns"),
        ("log", "builds", True, False, "showBuildLog"),
        ("events", "runs", True, True, "listRunEvents"),
        ("again", "builds", False, False, "buildAgain"),
        ("why", "runs", True, False, "showWhyRunWaits"),
        ("cancel", "runs", False, False, "cancelRun"),
        ("depth", "queue", True, False, "showQueueDepth"),
        ("show_policy", "feeds", True, False, "showFeedPolicy"),
    ],
)
def test_names_are_made_of_functions_and_tags(function, tag, reads, lists, expected):
    assert naming.id_of(naming.Operation(function, tag, reads, lists)) == expected


def test_two_schemas_of_one_name_are_not_mixed_up():
    schemas = openapi._Schemas(api, "")
    schemas.add_schema_definitions({"RunOut": schemas.schemas["RunOut"]})

    with pytest.raises(ValueError, match="RunOut"):
        schemas.add_schema_definitions({"RunOut": {"type": "object"}})


@pytest.mark.parametrize("name", ["NewWebhook", "WebhookOut"])
def test_the_topics_of_webhooks_are_listed(name):
    topics = DESCRIPTION["components"]["schemas"][name]["properties"]["topics"]

    assert topics["items"]["enum"] == Topic.values
