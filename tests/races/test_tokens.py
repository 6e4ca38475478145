import pytest

from api import grants, tokens
from api.models import ApiToken

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def parent(olga, workspace):
    token, _ = tokens.issue(workspace, olga, "nightly", ["operate"], actor="olga")
    return token


def making(parent):
    return lambda: grants.make(parent.workspace, parent.user, "made", [], actor="olga", made_with=parent)


def test_a_token_that_is_being_revoked_makes_no_other(threads, parent):
    revoked = threads.hold(lambda: tokens.revoke(parent, actor="ada"))
    made = threads.start(making(parent))
    assert made.waits()

    assert revoked.commit()
    assert isinstance(made.error(), grants.NotUsable)
    assert ApiToken.objects.get() == parent


@pytest.mark.parametrize("which", ["parent", "grandparent"])
def test_what_is_being_made_with_a_token_is_revoked_with_it(threads, parent, which):
    if which == "grandparent":
        first, _ = tokens.issue(parent.workspace, parent.user, "first", [], actor="olga")
        ApiToken.objects.filter(pk=parent.pk).update(made_with=first)
    made = threads.hold(making(parent))
    revoked = threads.start(lambda: tokens.revoke(first if which == "grandparent" else parent, actor="ada"))
    assert revoked.waits()

    made.commit()

    assert revoked.answer()
    assert not ApiToken.objects.not_revoked().exists()


def test_two_that_are_made_with_one_token_are_both_made(threads, parent):
    first = threads.hold(making(parent))
    second = threads.start(lambda: grants.make(parent.workspace, parent.user, "b", [], actor="o", made_with=parent))
    first.commit()

    assert second.answer()
    assert ApiToken.objects.filter(made_with=parent).count() == 2
