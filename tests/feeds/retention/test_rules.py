"""The tables that may lose rows are declared twice, and a system check compares both lists (X43)."""

import pytest
from django.core import checks

from config.doctor import system_checks
from feeds.retention import rules
from feeds.retention.rules import Rule


def found():
    return {message.id: message.msg for message in checks.run_checks() if message.id.startswith("ade.")}


def test_the_lists_of_this_installation_fit():
    assert found() == {}


def test_a_table_in_both_lists_is_refused(settings):
    settings.IMMUTABLE = [*settings.IMMUTABLE, "feeds.RawArticle"]

    assert found() == {
        "ade.E002": "feeds.RawArticle is in both PURGE_ALLOWED and IMMUTABLE. Remove it from one of them."
    }
    assert system_checks().level == "FAIL"


def test_a_table_that_is_none_is_refused(settings):
    settings.IMMUTABLE = [*settings.IMMUTABLE, "feeds.Article"]

    assert found() == {"ade.E001": "PURGE_ALLOWED or IMMUTABLE names feeds.Article, which is not a model."}


def test_a_table_without_a_rule_is_refused(settings):
    settings.PURGE_ALLOWED = [*settings.PURGE_ALLOWED, "runs.Artifact"]

    assert "runs.Artifact" in found()["ade.E003"]


@pytest.mark.parametrize("rule", [Rule(kept_by=("brief_articles",)), Rule(goes_with=("links",))])
def test_a_reference_that_nobody_has_thought_of_is_refused(monkeypatch, rule):
    monkeypatch.setitem(rules.RULES, "feeds.RawArticle", rule)

    assert "refers to it as" in found()["ade.E004"]


def test_what_goes_with_a_row_has_to_be_allowed_to(monkeypatch):
    monkeypatch.setitem(rules.RULES, "feeds.RawArticle", Rule(goes_with=("links", "brief_articles")))

    said = "feeds.BriefArticle is deleted together with feeds.RawArticle, but is not in PURGE_ALLOWED. Add it there."
    assert found() == {"ade.E005": said}
