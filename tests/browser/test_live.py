"""Pages that change while they are open. Tested on both databases, because each announces changes in its own way."""

import pytest

from tests.factories import bring_to
from work import lifecycle
from work.work_types import work_type_named

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


def test_a_button_never_becomes_another_one(look, olga, run_of):
    """A user who is about to press Cancel when the run ends must not press Run again."""
    run = run_of(status="running")
    person = look(olga)
    page = person.page
    person.go(f"/runs/{run.pk}/")
    page.locator("body[data-live=yes]").wait_for()
    page.locator("summary", has_text="Cancel").click()
    assert page.get_by_role("button", name="Cancel this run").is_visible()

    bring_to(run, "succeeded")
    page.locator(".lead", has_text="succeeded").wait_for()

    assert page.locator("details.act[open]").count() == 0
    assert page.get_by_role("button", name="Cancel this run").count() == 0
    assert person.complaints == []


def test_a_page_is_live_whenever_its_scripts_come(look, olga):
    """From the second load on, the scripts come from the cache, and not always all at once."""
    person = look(olga)

    for n in range(20):
        person.go("/runs/" if n % 2 else "/")
        person.page.locator("body[data-live=yes]").wait_for()

    assert person.complaints == []


def test_a_page_follows_a_run_to_its_end(look, olga, run_of):
    run = run_of()
    person = look(olga)
    person.go(f"/runs/{run.pk}/")
    person.page.locator("body[data-live=yes]").wait_for()

    bring_to(run, "running")
    person.page.locator(".lead", has_text="running").wait_for()
    lifecycle.record(work_type_named("run").states, run.pk, "LOG", message="hello there", data={"stream": "stdout"})
    person.page.locator(".log", has_text="hello there").wait_for()
    bring_to(run, "succeeded")
    person.page.locator(".lead", has_text="succeeded").wait_for()

    assert person.complaints == []


def test_what_is_being_written_stays_while_a_page_changes(look, olga, run_of):
    run = run_of()
    person = look(olga)
    page = person.page
    person.go(f"/runs/{run.pk}/")
    page.locator("body[data-live=yes]").wait_for()
    page.locator("summary", has_text="Cancel").click()
    page.get_by_label("Reason").fill("half a sen")

    bring_to(run, "running")
    page.locator(".lead", has_text="running").wait_for()

    assert page.get_by_label("Reason").input_value() == "half a sen"
    assert page.evaluate("document.activeElement.name") == "reason"
    assert person.complaints == []


def test_a_list_shows_a_new_run_by_itself(look, olga, run_of):
    run_of()
    person = look(olga)
    person.go("/runs/")
    person.page.locator("body[data-live=yes]").wait_for()

    new = run_of("new.pdf")

    person.page.locator("main", has_text="new.pdf").wait_for()
    assert person.page.locator("tbody a").first.inner_text() == str(new.pk)
    assert person.complaints == []
