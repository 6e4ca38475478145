"""Every page of the admin, and all that is neither of it nor of the console, in a real browser: nothing that keeps
somebody out, nothing wider than the screen.
"""

import pytest
from django.contrib import admin
from django.contrib.contenttypes.models import ContentType
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

# How pages look has nothing to do with the database.
pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True), pytest.mark.only_on("sqlite")]

LONG = "<img src=x onerror=alert(1)>" + "W" * 120


@pytest.fixture
def root(transactional_db):
    ContentType.objects.clear_cache()
    return UserFactory(username="root", is_staff=True, is_superuser=True)


def elsewhere():
    brief = BriefItemFactory(headline=LONG).brief
    DocumentChunkFactory(text="A bridge was closed.", document__name=LONG)
    yield from ("/sign-in/", "/documents/add/", "/feeds/add/", "/api/docs")
    yield from ("/documents/search/", "/documents/search/?q=bridge", "/documents/search/?q=%22")
    yield from ("/briefs/", f"/briefs/{brief.name}/")


def paths():
    yield reverse("admin:index")
    yield reverse("admin:password_change")
    for model, page in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        if any(url.name == f"{name.removeprefix('admin:')}_add" for url in page.urls):
            yield reverse(f"{name}_add")
        row = model._base_manager.order_by("-pk").first()
        if row is not None:
            yield reverse(f"{name}_change", args=[row.pk])


def seen(person, path):
    """What is wrong with a page."""
    answer = person.go(path)
    if answer.status == 403:
        # What nobody may do, such as adding what only a verb creates, has a page that says so.
        person.complaints.clear()
    person.page.wait_for_load_state()
    found = [f"answered {answer.status}"] if answer.status not in (200, 403) else []
    found += [*person.complaints, *(f"too wide: {each}" for each in person.overflow()), *person.breaches()]
    # What looks for breaches reads the styles of some pages by a style of its own, which their policy forbids it.
    person.complaints.clear()
    return found


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1440, "dark")])
def test_every_page_fits_and_can_be_used_by_everybody(look, root, width, scheme):
    much_has_happened()
    FeedFactory(title=LONG)
    ClusterArticleFactory(raw_article__title=LONG)
    RunFieldFactory(name=LONG[:60], value=LONG)
    ArtifactFactory(name=LONG)
    DeliveryFactory()
    person = look(root, width=width, scheme=scheme)

    wrong = {path: found for path in [*paths(), *elsewhere()] if (found := seen(person, path))}

    assert wrong == {}
