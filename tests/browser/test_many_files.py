"""Many files are chosen or dropped on the page of the console, with its script and without."""

import pytest

from documents.models import Document
from tests.documents.samples import PDF, TXT
from tests.factories import MembershipFactory, UserFactory

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]

ADD = "/documents/add/"
FILES = [
    {"name": "invoice.pdf", "mimeType": "application/pdf", "buffer": PDF},
    {"name": "letter.txt", "mimeType": "text/plain", "buffer": TXT},
    {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""},
    {"name": "again.txt", "mimeType": "text/plain", "buffer": TXT},
]
# Drops text files on the page, as a person does.
DROP = """(count) => {
    const data = new DataTransfer();
    for (let n = 0; n < count; n += 1) data.items.add(new File([`letter ${n}\\n`], `${n}.txt`, {type: "text/plain"}));
    for (const kind of ["dragover", "drop"]) {
        document.querySelector("main").dispatchEvent(
            new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data}));
    }
}"""


@pytest.fixture
def person(look, workspace, request):
    user = UserFactory(username="edda")
    MembershipFactory(workspace=workspace, user=user, role="operator")
    return look(user, **getattr(request, "param", {}))


def lines(page):
    return [" ".join(line.split()) for line in page.locator(".uploads li").all_inner_texts()]


def test_each_file_shows_what_became_of_it(person):
    page = person.page
    person.go(ADD)
    page.get_by_label("Files", exact=True).set_input_files(FILES[:3])
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("2 of 3 stored, 1 refused.").wait_for()
    page.get_by_label("Files", exact=True).set_input_files(FILES[3:])
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("2 of 4 stored, 1 already there, 1 refused.").wait_for()

    stored = {document.name: document.pk for document in Document.objects.all()}
    assert stored.keys() == {"invoice.pdf", "letter.txt"}
    assert lines(page) == [
        f"invoice.pdf stored document {stored['invoice.pdf']}",
        f"letter.txt stored document {stored['letter.txt']}",
        "empty.txt refused: The file empty.txt is empty.",
        f"again.txt already there document {stored['letter.txt']}",
    ]
    page.get_by_role("link", name=f"document {stored['letter.txt']}").last.click()
    page.wait_for_url(f"**/documents/{stored['letter.txt']}/")
    # The browser logs the answers that refuse a file.
    assert [each for each in person.complaints if "422" not in each and "409" not in each] == []


def test_a_folder_is_added_with_everything_in_it(person, tmp_path):
    page = person.page
    for name in ("one.txt", "below/two.txt", "below/deep/three.txt"):
        path = tmp_path / "papers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is {name}\n")

    person.go(ADD)
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Choose a folder").click()
    choosing.value.set_files(tmp_path / "papers")
    page.get_by_text("3 of 3 stored.").wait_for()

    assert set(Document.objects.values_list("name", flat=True)) == {"one.txt", "two.txt", "three.txt"}


def test_without_a_workspace_nothing_is_sent(look):
    user = UserFactory(username="edda")
    for _ in range(2):
        MembershipFactory(user=user, role="operator")
    person = look(user)
    person.go(ADD)

    person.page.evaluate(DROP, 3)

    assert person.page.get_by_label("Workspace").evaluate("each => each.matches(':focus')")
    assert person.page.locator(".uploads").count() == 0
    assert not Document.objects.exists()


@pytest.mark.parametrize("person", [{"width": 375, "scheme": "dark"}], indirect=True)
def test_files_that_are_dropped_anywhere_arrive_once(person):
    page = person.page
    person.go(ADD)

    page.evaluate(DROP, 60)
    page.get_by_text("60 of 60 stored.").wait_for(timeout=300_000)

    assert sorted(Document.objects.values_list("name", flat=True)) == sorted(f"{n}.txt" for n in range(60))
    assert person.overflow() == []
    assert person.complaints == []


def test_a_file_whose_answer_was_lost_is_sent_again_and_stored_once(person):
    page, lost = person.page, []

    def lose(route):
        if lost or route.request.method != "POST":
            return route.continue_()
        # The server stores the file, and the connection breaks.
        lost.append(route.fetch())
        return route.abort()

    person.go(ADD)
    page.route("**/documents/add/", lose)
    page.get_by_label("Files", exact=True).set_input_files(FILES[1])
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("0 of 1 stored, 1 already there.").wait_for(timeout=300_000)

    assert [document.name for document in Document.objects.all()] == ["letter.txt"]
    assert lost[0].status == 201


def test_who_is_signed_out_meanwhile_is_told(person):
    page = person.page
    person.go(ADD)
    person.context.clear_cookies()
    page.get_by_label("Files", exact=True).set_input_files(FILES[1])
    page.get_by_role("button", name="Add", exact=True).click()

    page.get_by_text("0 of 1 stored, 1 refused.").wait_for()
    assert "Sign in and choose the file again" in lines(page)[0]


@pytest.mark.parametrize("person", [{"scripts": False}], indirect=True)
def test_many_files_are_sent_without_scripts(person):
    page = person.page
    person.go(ADD)
    page.get_by_label("Files", exact=True).set_input_files(FILES)
    person.press(page.get_by_role("button", name="Add", exact=True))

    assert page.get_by_role("heading", name="4 files").is_visible()
    stored, letter, empty, again = lines(page)
    assert stored.startswith("invoice.pdf stored document")
    assert letter.startswith("letter.txt stored document")
    assert empty == "empty.txt refused The file empty.txt is empty."
    assert again.startswith("again.txt already there document")
    assert Document.objects.count() == 2
