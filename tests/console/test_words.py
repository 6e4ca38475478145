import pytest

from console import formatting

pytestmark = pytest.mark.edge


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("The name is empty.", "Nothing was saved. The name is empty."),
        ("the name is empty", "Nothing was saved: the name is empty."),
        ("“a” is too short.", "Nothing was saved: “a” is too short."),
    ],
)
def test_a_reason_is_added_as_a_sentence_or_as_the_rest_of_one(reason, said):
    assert formatting.after("Nothing was saved", reason) == said
