import pytest
from django.urls import reverse

from tests.documents.searched import published
from tests.factories import MembershipFactory, UserFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db

URL = "/documents/search/"
APPLES = "The delivery of apples arrived on time and nobody complained."
CATS = "Cats like fish and sleep most of the day."


@pytest.fixture
def ask(client, olga):
    client.force_login(olga)

    def ask(q=None, **asked):
        page = client.get(URL, {"q": q, **asked} if q is not None else {})
        return page, page.content.decode()

    return ask


def test_it_is_there_for_who_is_signed_in(client):
    page = client.get(URL, {"q": "apples"})

    assert page.status_code == 302
    assert page["Location"].startswith(reverse("console:sign_in"))


def test_nothing_is_changed_by_looking(ask, client):
    assert client.post(URL, {"q": "apples"}).status_code == 405


def test_before_anything_is_asked_there_is_a_form(ask):
    page, text = ask()

    assert page.status_code == 200
    assert 'name="q"' in text
    assert "Nothing was" not in text


def test_what_is_found_leads_to_its_document(ask, workspace):
    document = published(workspace, CATS, APPLES, name="letter.pdf")

    page, text = ask("apples")

    assert page.status_code == 200
    assert f'<a href="{reverse("console:document", args=[document.pk])}?page=2">letter.pdf</a>' in text
    assert "delivery of <mark>apples</mark> arrived" in text
    assert "page 2" in text
    assert "found by words and meaning" in text


def test_texts_and_names_stay_text(ask, workspace):
    evil = "<script>alert(1)</script>"
    published(workspace, f"{evil} {APPLES}", name=f"{evil}.pdf")

    _, text = ask("script apples")

    assert evil not in text
    assert "&lt;<mark>script</mark>&gt;alert(1)" in text


def test_what_was_typed_stays_text(ask):
    _, text = ask('"><img src=x>')

    assert "<img src=x>" not in text


def test_an_empty_answer_says_what_may_help(ask, workspace):
    _, text = ask("apples")

    assert "No results. Try fewer or different words, or fewer filters." in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"q": ""}, "This field is required."),
        ({"q": "  "}, "This field is required."),
        ({"q": "a\0b"}, "Null characters are not allowed."),
        ({"q": "a", "workspace": "999999"}, "Select a valid choice."),
        ({"q": "a", "workspace": "x"}, "Select a valid choice."),
        ({"q": "a", "by": "guessing"}, "Select a valid choice."),
        ({"q": "a", "type": "text/evil"}, "Select a valid choice."),
        ({"q": "a", "since": "yesterday"}, "Enter a valid date."),
        ({"q": "a", "until": "2026-02-30"}, "Enter a valid date."),
        ({"q": "a", "after": "-1"}, "greater than or equal to 0"),
        ({"q": "a", "after": "1" * 5000}, "Enter a whole number."),
    ],
)
def test_what_cannot_be_asked_is_told(ask, asked, said):
    page, text = ask(**asked)

    assert page.status_code == 400
    assert "The search was not run." in text
    assert said in text


@pytest.mark.parametrize(
    "asked",
    [
        {"q": "x" * 5000},
        {"q": "apples", "since": "0001-01-01", "until": "9999-12-31"},
        {"q": "\ud800".encode("utf-8", "surrogatepass")},
        {"q": "apples", "by": "", "after": "300"},
    ],
)
def test_what_is_strange_is_answered(ask, workspace, asked):
    published(workspace, APPLES)

    assert ask(**asked)[0].status_code == 200


def test_filters_are_those_of_the_person(ask, workspace, olga):
    other = MembershipFactory(user=olga, workspace__name="Other").workspace
    WorkspaceFactory(name="Elsewhere")
    published(workspace, APPLES, name="here", content_type="text/plain")
    published(other, APPLES, name="there", content_type="text/csv")

    _, text = ask("apples", workspace=other.pk)

    assert (">there</a>" in text, ">here</a>" in text, "Elsewhere" in text) == (True, False, False)
    _, text = ask("apples", type="text/plain", by="words", since="2000-01-01", until="2999-01-01")
    assert (">there</a>" in text, ">here</a>" in text) == (False, True)
    assert ">here</a>" not in ask("apples", until="2000-01-01")[1]


def test_nothing_of_other_workspaces_is_shown(ask, workspace):
    published(WorkspaceFactory(name="Elsewhere"), APPLES, name="secret", model="other model")

    _, text = ask("apples")

    assert "secret" not in text
    assert "other model" not in text
    assert "No results." in text


def test_there_are_further_pages(ask, workspace):
    for n in range(25):
        published(workspace, f"{APPLES} {n}", name=f"letter {n}")

    first, text = ask("apples", by="words")
    assert text.count("<li>") - text.count('<li class="') >= 20
    assert '<a href="?q=apples&amp;by=words&amp;after=20" rel="next">More</a>' in text
    second, text = ask("apples", by="words", after="20")

    shown = [{hit.chunk_id for hit in page.context["found"].hits} for page in (first, second)]
    assert [len(each) for each in shown] == [20, 5]
    assert not shown[0] & shown[1]
    assert '<ol class="hits" start="21">' in text
    assert "More</a>" not in text


def test_a_superuser_finds_everything(client, workspace):
    published(workspace, APPLES, name="letter")
    client.force_login(UserFactory(is_superuser=True, is_staff=True))

    assert ">letter</a>" in client.get(URL, {"q": "apples"}).content.decode()
