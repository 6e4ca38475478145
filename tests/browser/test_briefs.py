from datetime import timedelta

import pytest

from tests.factories import BriefArticleFactory, BriefFactory, BriefItemFactory, FeedFactory, write
from tests.feeds.hostile_words import TITLES, URLS
from tests.feeds.telling import SLOT, event, published, tell

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]

DAY = timedelta(days=1)
PAPERS = ("The Daily Example", "Beispiel-Zeitung", "Evening Sample", "Ejemplo")
PAGES = ("/briefs/", "/briefs/2026-05-04/", "/briefs/2026-05-05/", "/briefs/2026-05-06/")


@pytest.fixture
def briefs(transactional_db):
    """A brief of every kind: with much content, with none, and with hostile content."""
    much_has_happened()
    published()
    BriefFactory(
        name="2026-05-05", scheduled_for=SLOT + DAY, articles_seen=0, clusters_seen=0, feeds_seen=0, feeds_silent=3
    )
    hostile = BriefFactory(name="2026-05-06", scheduled_for=SLOT + 2 * DAY)
    long = "Wwwwwwwww" * 55
    for n, (title, url) in enumerate(zip([*TITLES, long, "كلمات من اليمين " * 5], URLS, strict=False)):
        item = BriefItemFactory(brief=hostile, position=n, headline=title, summary=title, reasons=[{"words": title}])
        BriefArticleFactory(item=item, position=0, title=title, url=url, source=title[:300])
        BriefArticleFactory(item=item, position=1, title=title, url="https://news.example.com/" + "a" * 700)


def much_has_happened():
    papers = [FeedFactory(title=title) for title in PAPERS]
    for paper in papers:
        write(paper, succeeded_at=SLOT)
    bridge = event("The old bridge over the river is closed until further notice")
    tell(bridge, papers[0], hours=30)
    published(SLOT - DAY)
    for n, paper in enumerate([*papers, papers[1], papers[1], papers[2]]):
        said = f"Bridge closed: what {n + 2} engineers have found, and how long it may take"
        tell(bridge, paper, hours=9 - n, similarity=0.95 - n / 50, title=said, summary="Cracks were found. " * 30)
    for n, headline in enumerate(("Harvest begins early this year", "A comet can be seen tonight", "市议会批准新预算")):
        cluster = event(headline)
        for paper in papers[n:]:
            tell(cluster, paper, hours=3 + n, title=f"{headline}, says {paper.title}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 375, 1440])
def test_pages_fit_and_nothing_is_complained_of(sign_in, zed, briefs, scheme, width):
    person = sign_in(zed)
    person.page.set_viewport_size({"width": width, "height": 900})
    person.page.emulate_media(color_scheme=scheme)

    for url in PAGES:
        person.go(url)
        assert person.page.evaluate("document.documentElement.scrollWidth") <= width, url

    assert person.complaints == []


def test_what_strangers_wrote_does_nothing(sign_in, zed, briefs):
    person = sign_in(zed)
    asked = []
    person.page.on("dialog", lambda dialog: asked.append(dialog.message))
    person.page.on("request", lambda request: asked.append(request.url) if "example.com" in request.url else None)

    person.go("/briefs/2026-05-06/")

    assert asked == []
    assert (
        person.page.locator("article a").evaluate_all("all => all.filter(each => !/^https?:/.test(each.protocol))")
        == []
    )
    assert person.page.locator(".unlinked").count() == len(TITLES) + 2


def test_a_reader_goes_through_a_brief_by_keyboard(sign_in, zed, briefs):
    person = sign_in(zed)
    page = person.page
    person.go("/briefs/")

    page.get_by_role("link", name="Monday, 4 May 2026").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    score = page.locator("summary").first
    assert not page.locator(".score table").first.is_visible()
    score.focus()
    page.keyboard.press("Enter")
    assert page.locator(".score table").first.is_visible()
    page.get_by_role("link", name="Tuesday, 5 May 2026").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")

    assert page.url.endswith("/briefs/2026-05-05/")
    assert "No feed answered in this period" in page.locator(".note").inner_text()
    assert person.complaints == []


def test_everything_is_there_without_scripts(chromium, live_server, settings, briefs):
    settings.ADE_PUBLIC_BRIEFS = True
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()

    page.goto(f"{live_server.url}/briefs/2026-05-04/")

    assert page.locator(".story").count() == 4
    page.locator("summary").first.click()
    assert page.locator(".score table").first.is_visible()
    context.close()


def test_on_paper_it_is_black_on_white_with_addresses_and_nothing_to_press(sign_in, zed, briefs):
    person = sign_in(zed)
    page = person.page
    page.emulate_media(color_scheme="dark", media="print")

    person.go("/briefs/2026-05-04/")

    assert page.locator("body").evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("h1").evaluate("each => getComputedStyle(each).color") == "rgb(0, 0, 0)"
    for hidden in ("header", "nav", ".score", ".forms", "footer"):
        for each in page.locator(hidden).all():
            assert not each.is_visible(), hidden
    after = page.locator(".tellings a").first.evaluate("each => getComputedStyle(each, '::after').content")
    assert "https://news.example.com/articles/" in after
    assert page.pdf(format="A4").startswith(b"%PDF-")
    assert person.complaints == []
