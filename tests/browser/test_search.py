import pytest

from tests.documents.searched import published
from tests.factories import MembershipFactory, force_status

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def letters(workspace):
    letter = published(
        workspace,
        "Dear Ms Example, the delivery of apples arrived on time. Nobody at Müller & Sons complained, and the boxes"
        " were whole. Kind regards",
        "The second half of the apples comes on Monday, as agreed in INV-2024-001.",
        name="letter to Müller.pdf",
    )
    force_status(letter, "processed", pages=2)
    published(workspace, "This invoice has to be paid within thirty days.", name="<b>invoice</b>.docx")
    published(workspace, "Cats like fish and sleep most of the day.", name="cats.txt", model="another model")


def test_olga_finds_a_document_and_opens_it(sign_in, olga, letters):
    person = sign_in(olga)
    page = person.page

    person.go("/documents/search/")
    page.get_by_label("Search:", exact=True).fill("apples muller")
    person.press(page.get_by_role("button", name="Search"))
    assert page.locator("mark").all_inner_texts()[:2] == ["apples", "Müller"]
    assert "1 document has vectors of another model" in page.locator(".note").inner_text()
    assert page.locator(".hits h2").first.inner_text() == "letter to Müller.pdf"
    assert "<b>invoice</b>.docx" in page.locator(".hits").inner_text()
    person.press(page.get_by_role("link", name="letter to Müller.pdf").first)

    assert page.locator("h1").inner_text().endswith("letter to Müller.pdf")
    assert person.complaints == []


def test_filters_stay_and_mistakes_are_told(sign_in, olga, letters):
    MembershipFactory(user=olga, workspace__name="Birch")
    person = sign_in(olga)
    page = person.page

    person.go("/documents/search/?q=apples&by=words&type=text/evil")
    assert page.get_by_role("alert").inner_text() == "The search was not run. Correct the errors below."
    person.go("/documents/search/?q=apples&by=words")
    page.get_by_label("Workspace:").select_option("Birch")
    person.press(page.get_by_role("button", name="Search"))

    assert "No results." in page.locator(".nothing").inner_text()
    assert page.get_by_label("By:").locator("option:checked").inner_text() == "words"
    assert page.get_by_label("Workspace:").locator("option:checked").inner_text() == "Birch"
    # The browser logs the 400 of the wrong address.
    assert [said for said in person.complaints if "400" not in said] == []
