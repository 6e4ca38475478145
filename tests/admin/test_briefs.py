import pytest

from tests.factories import BriefArticleFactory, UserFactory, columns_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def rows():
    article = BriefArticleFactory(title=EVIL, source=EVIL, url="javascript:alert(1)", item__headline=EVIL)
    return {"brief": article.item.brief, "briefitem": article.item, "briefarticle": article}


@pytest.fixture
def root(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def test_whoever_may_enter_the_admin_sees_them(client, zed, rows):
    client.force_login(zed)

    for name, row in rows.items():
        assert client.get(f"/admin/feeds/{name}/").status_code == 200
        assert client.get(f"/admin/feeds/{name}/{row.pk}/change/").status_code == 200
        assert client.post(f"/admin/feeds/{name}/{row.pk}/change/", {"title": "changed"}).status_code == 403


def test_what_was_published_is_shown_and_not_changed(root, rows):
    for name, row in rows.items():
        before, url = columns_of(row), f"/admin/feeds/{name}/{row.pk}"
        assert root.get(f"/admin/feeds/{name}/").status_code == 200
        assert root.get(f"{url}/change/").status_code == 200

        for answer in (
            root.post(f"{url}/change/", {"headline": "changed", "title": "changed", "name": "changed"}),
            root.post(f"{url}/delete/", {"post": "yes"}),
            root.get(f"/admin/feeds/{name}/add/"),
        ):
            assert answer.status_code == 403
        assert columns_of(row) == before


def test_what_strangers_wrote_stays_text(root, rows):
    for name, row in rows.items():
        for url in (f"/admin/feeds/{name}/", f"/admin/feeds/{name}/{row.pk}/change/"):
            page = root.get(url).content.decode()
            assert EVIL not in page
            assert 'href="javascript:' not in page


def test_a_brief_leads_to_its_page(root, rows):
    brief = rows["brief"]

    assert (
        f'<a href="/briefs/{brief.name}/">Read</a>'
        in root.get(f"/admin/feeds/brief/{brief.pk}/change/").content.decode()
    )


def test_it_is_found_by_what_it_says(root, rows):
    for name, words, found in (
        ("brief", rows["brief"].name, 1),
        ("briefitem", "alert", 1),
        ("briefarticle", "cats", 0),
    ):
        assert len(root.get(f"/admin/feeds/{name}/", {"q": words}).context["cl"].result_list) == found
