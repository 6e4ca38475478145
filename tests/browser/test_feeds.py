import pytest

from feeds.models import FeedSource
from tests.factories import FeedFactory, UserFactory, told

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]


def test_a_feed_is_added_with_a_slip_first_and_then_paused(sign_in):
    person = sign_in(UserFactory(username="root", is_staff=True, is_superuser=True))
    page = person.page

    person.go("/admin/feeds/feedsource/")
    person.press(page.get_by_role("link", name="Add feed"))
    page.get_by_label("URL").fill("tides.example.org/rss")
    page.get_by_label("Title").fill("Tides")
    person.press(page.get_by_role("button", name="Add"))
    assert "must begin with https:// or http://" in page.locator(".field-url .errorlist").inner_text()
    assert page.get_by_label("Title").input_value() == "Tides"
    page.get_by_label("URL").fill("https://tides.example.org/rss")
    person.press(page.get_by_role("button", name="Add"))

    feed = FeedSource.objects.get()
    assert person.messages() == [f"Added feed {feed.pk}, Tides. It is checked when the job runs next."]
    person.press(page.get_by_role("button", name="Pause"))
    assert person.messages() == ["Paused 1 feed."]
    assert told(feed) == ["FEED_ADDED", "FEED_PAUSED"]
    assert page.get_by_role("button", name="Resume").is_visible()
    assert not page.get_by_role("button", name="Pause").is_visible()
    assert person.complaints == []


def test_zed_looks_and_has_no_buttons(sign_in, zed):
    feed = FeedFactory(title="<b>Tides</b>")
    person = sign_in(zed)
    page = person.page

    person.go("/admin/feeds/feedsource/")
    assert page.get_by_role("link", name="Add feed").count() == 0
    person.press(page.get_by_role("link", name="<b>Tides</b>"))

    assert page.get_by_role("link", name=feed.url).is_visible()
    assert page.locator("#content").get_by_role("button").count() == 0
    assert person.complaints == []
