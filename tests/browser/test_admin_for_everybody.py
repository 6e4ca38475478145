"""Every page outside the console, the admin included, in a real browser: accessible, and no wider than the screen."""

import pytest
from django.contrib import admin
from django.urls import reverse

from tests.breaches import much_has_happened
from tests.factories import (
    ArtifactFactory,
    BriefItemFactory,
    ClusterArticleFactory,
    DeliveryFactory,
    DocumentChunkFactory,
    FeedFactory,
    RunFieldFactory,
    UserFactory,
)

# The look of pages does not depend on the database.
pytestmark = [pytest.mark.long(seconds=40), pytest.mark.django_db(transaction=True), pytest.mark.once]

LOOKS = [(375, "light"), (1440, "dark")]
# Split, so that no test process has to visit all pages.
PARTS = 3
LONG = "<img src=x onerror=alert(1)>" + "W" * 120


@pytest.fixture
def root(transactional_db):
    return UserFactory(username="root", is_staff=True, is_superuser=True)


def elsewhere():
    brief = BriefItemFactory(headline=LONG).brief
    DocumentChunkFactory(text="A bridge was closed.", document__name=LONG)
    yield from ("/sign-in/", "/documents/add/", "/feeds/add/", "/api/docs")
    yield from ("/documents/search/", "/documents/search/?q=bridge", "/documents/search/?q=%22")
    yield from ("/briefs/", f"/briefs/{brief.name}/")


def paths():
    yield reverse("admin:index")
    for model, page in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        if any(url.name == f"{name.removeprefix('admin:')}_add" for url in page.urls):
            yield reverse(f"{name}_add")
        row = model._base_manager.order_by("-pk").first()
        if row is not None:
            yield reverse(f"{name}_change", args=[row.pk])


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_fits_and_can_be_used_by_everybody(look, root, part):
    much_has_happened()
    FeedFactory(title=LONG)
    ClusterArticleFactory(raw_article__title=LONG)
    RunFieldFactory(name=LONG[:60], value=LONG)
    ArtifactFactory(name=LONG)
    DeliveryFactory()
    person = look(root)
    some = [*paths(), *elsewhere()][part::PARTS]

    wrong = {path: found for path in some if (found := person.wrong_at(path, LOOKS, allowed=(200, 403)))}

    assert wrong == {}
