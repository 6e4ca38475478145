import pytest

from tests.factories import BriefArticleFactory, BriefFactory, BriefItemFactory
from tests.feeds.telling import SLOT, event, published, tell

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def brief():
    tell(event("Bridge closed"), title="The bridge is closed", url="https://news.example.com/bridge")
    return published()


def test_list_has_the_newest_first(manage, brief):
    newer = BriefFactory(name="2026-05-05")

    def names(*arguments):
        return [row["name"] for row in manage("brief", "list", *arguments, "--json").json["briefs"]]

    assert names() == ["2026-05-05", "2026-05-04"]
    assert names("--limit", 1) == ["2026-05-05"]
    assert names("--before", newer.pk) == ["2026-05-04"]
    assert "2026-05-04" in manage("brief", "list").out


def test_list_says_how_much_each_tells(manage, brief):
    (row,) = manage("brief", "list", "--json").json["briefs"]

    assert (row["events"], row["articles_seen"], row["window_until"]) == (1, 1, "2026-05-04T06:00:00Z")


def test_show_prints_the_latest_the_one_of_a_day_or_the_one_of_an_id(manage, brief):
    BriefFactory(name="2026-05-03", scheduled_for=SLOT.replace(day=3))

    for asked in ([], ["2026-05-04"], [brief.pk]):
        shown = manage("brief", "show", *asked)
        assert shown.code == 0
        assert shown.out.startswith("Brief of Monday, 4 May 2026\n")
        assert "\n      https://news.example.com/bridge\n" in shown.out
    assert "Brief of Sunday, 3 May 2026" in manage("brief", "show", "2026-05-03").out


def test_show_answers_in_json_with_what_it_tells_and_why(manage, brief):
    shown = manage("brief", "show", "--json").json

    assert (shown["name"], shown["id"]) == ("2026-05-04", brief.pk)
    (item,) = shown["items"]
    assert (item["headline"], item["article_count"]) == ("Bridge closed", 1)
    assert {reason["name"] for reason in item["reasons"]} == {"coverage", "freshness"}
    (article,) = item["articles"]
    assert (article["title"], article["url"]) == ("The bridge is closed", "https://news.example.com/bridge")


def test_show_is_harmless_in_a_terminal(manage):
    item = BriefItemFactory(headline="\x1b[2J\u202eevil", reasons=[])
    BriefArticleFactory(item=item, title="\x1b]0;owned\x07", source="a\nb", url="https://news.example.com/\x1b[2J")

    out = manage("brief", "show", item.brief_id).out

    assert all(each == "\n" or each.isprintable() for each in out)
    assert "[2Jevil" in out


@pytest.mark.parametrize("asked", [[], ["2026-05-04"], ["17"], ["9" * 30], ["latest"], ["' OR 1=1"]])
def test_what_is_not_there_is_said_so(manage, asked):
    ended = manage("brief", "show", *asked, "--json")

    assert ended.code == 6
    assert ended.error["code"] == "not_found"
    assert "`manage.py brief list` shows them" in ended.error["message"]
