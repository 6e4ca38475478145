import pytest

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_a_refusal_says_why_in_the_look_of_the_pages(seen_by, zed):
    page = seen_by(zed, "/workers/")

    assert page.status_code == 403
    assert "Only members of a workspace can see this. You are not a member of any." in page.content.decode()
    assert '<main id="main"' in page.content.decode()


def test_what_is_not_there_is_told_with_the_menu(seen_by, olga):
    page = seen_by(olga, "/runs/999/")

    assert page.status_code == 404
    assert "Page not found" in page.content.decode()
    assert 'aria-label="Pages"' in page.content.decode()
    assert "999" not in page.content.decode().replace("/runs/999/", "")


def test_whoever_is_not_signed_in_learns_nothing_from_what_is_not_there(client):
    page = client.get("/nowhere/")

    assert page.status_code == 404
    assert 'aria-label="Pages"' not in page.content.decode()


def test_the_address_of_a_form_says_that_it_is_one(seen_by, olga, client):
    page = seen_by(olga, "/feeds/import/")

    assert (page.status_code, page["Allow"]) == (405, "POST")
    assert "Go back to the page with the form" in page.content.decode()
    client.logout()
    assert 'aria-label="Pages"' not in client.get("/feeds/import/").content.decode()
