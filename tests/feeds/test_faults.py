"""Rows B10, B11 and F12 to F19 of the fault study (feeds, clusters, retention, contended slots), each with the tests
that prove it. `tests/schedules/test_time.py` has the table for time.
"""

from tests.covered import not_there

HOSTILE = "tests/feeds/test_fetching_hostile_servers.py::"
FETCHING = "tests/feeds/test_fetching.py::"
NETWORK = "tests/feeds/test_fetching_network.py::"
URLS = "tests/feeds/test_fetching_hostile_urls.py::"
READER = "tests/feedreader/test_hostile.py::"
FORMATS = "tests/feedreader/test_formats.py::"
STORING = "tests/feeds/test_storing.py::"
INGESTION = "tests/feeds/test_ingestion.py::"
MANY = "tests/feeds/test_two_hundred_feeds.py::"
CLUSTERING = "tests/feeds/test_clustering.py::"
AT_ONCE = "tests/feeds/test_clustering_at_once.py::"
LINKS = "tests/feeds/test_cluster_links.py::"
ARTICLES = "tests/feeds/retention/test_articles.py::"
RETENTION = "tests/feeds/retention/test_job.py::"
RULES = "tests/feeds/retention/test_rules.py::"
MILLION = "tests/feeds/retention/test_a_million.py::"
PURGES = "tests/races/test_article_retention.py::"
SLOTS = "tests/races/test_slots_at_scale.py::"
STALE = "tests/races/test_stale_slots.py::"
SWEEP = "tests/sweep/test_crash_points.py::"

PROVED_BY = {
    "B10 two schedulers at one slot": [
        SLOTS + "test_schedulers_that_claim_the_same_slots_claim_each_once",
        SLOTS + "test_schedulers_that_look_at_the_same_schedules_run_each_slot_once",
        "tests/schedules/test_lane.py::test_of_two_workers_one_gets_the_slot",
    ],
    "B11 a stale slot whose owner lives": [
        STALE + "test_an_end_that_comes_first_stays",
        STALE + "test_an_end_that_comes_second_is_refused",
        STALE + "test_of_many_who_give_it_up_and_end_it_one_is_right",
    ],
    "F12 a feed that is too large, too slow or has no end": [
        HOSTILE + "test_f12_a_slow_server_has_no_more_than_its_time",
        HOSTILE + "test_f12_a_feed_that_is_too_large_is_not_read_to_its_end",
        HOSTILE + "test_f12_what_is_packed_to_nothing_ends_as_well",
        HOSTILE + "test_f12_headers_have_an_end",
        HOSTILE + "test_f12_hostile_servers_do_no_harm_to_others",
        FETCHING + "test_f12_five_redirects_are_followed_and_a_sixth_is_not",
        FETCHING + "test_f12_a_circle_of_redirects_is_left_at_once",
        NETWORK + "test_f12_a_resolver_that_hangs_has_no_more_than_the_time_of_a_fetch",
        MANY + "test_all_good_items_are_stored_once_and_no_hostile_feed_harms_another",
    ],
    "F13 a feed that is malformed, explosive, prying, mangled or very long": [
        READER + "test_a_declaration_of_a_type_is_refused_before_a_parser_of_feeds_sees_it",
        READER + "test_nothing_is_included_or_opened",
        READER + "test_whatever_it_is_reading_has_an_end",
        READER + "test_who_needs_too_much_memory_is_ended",
        FORMATS + "test_of_a_feed_with_very_many_items_the_first_are_taken",
        INGESTION + "test_the_job_fails_when_no_feed_answers",
        INGESTION + "test_the_job_has_succeeded_when_those_that_failed_are_few",
        MANY + "test_all_good_items_are_stored_once_and_no_hostile_feed_harms_another",
    ],
    "F14 a feed that leads inside": [
        URLS + "test_s9_a_hostile_url_is_refused_before_anything_connects",
        URLS + "test_s9_f14_a_redirect_to_a_hostile_url_is_refused_before_anything_connects",
        URLS + "test_s9_f14_so_it_is_behind_several_redirects_of_any_kind",
        NETWORK + "test_s9_the_connection_goes_to_the_address_that_was_looked_at",
    ],
    "F15 one bad item": [
        FORMATS + "test_one_broken_item_does_not_lose_the_others",
        STORING + "test_an_item_without_a_link_to_follow_does_not_lose_the_others",
        STORING + "test_what_the_database_refuses_does_not_lose_the_others",
    ],
    "F16 the same URL twice": [
        STORING + "test_a_url_in_many_spellings_is_one_article",
        STORING + "test_what_somebody_else_stores_meanwhile_is_a_duplicate",
        STORING + "test_two_feeds_bring_the_same_at_once",
        STORING + "test_many_feeds_bring_the_same_at_once",
        INGESTION + "test_two_feeds_bring_the_same_at_once",
    ],
    "F17 clustering is run again, or dies on the way": [
        CLUSTERING + "test_again_is_nothing",
        CLUSTERING + "test_a_slot_that_was_interrupted_is_gone_on_with",
        AT_ONCE + "test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing",
        AT_ONCE + "test_one_that_is_killed_while_articles_move_is_gone_on_with",
        AT_ONCE + "test_several_processes_at_once_put_each_article_into_one_cluster",
        AT_ONCE + "test_threads_at_once_count_what_is_linked",
        AT_ONCE + "test_who_dies_between_two_parts_of_an_event_is_gone_on_with",
        LINKS + "test_two_at_once_unlink_each_article_once",
        "tests/feeds/test_invariants.py::test_a_cluster_that_counts_wrong",
        SWEEP + "test_nothing_is_lost_doubled_or_stuck",
    ],
    "F18 retention and what is referred to": [
        RETENTION + "test_only_rows_of_tables_that_are_allowed_are_deleted",
        RULES + "test_a_reference_that_nobody_has_thought_of_is_refused",
        ARTICLES + "test_what_a_brief_names_is_never_deleted",
        ARTICLES + "test_the_database_itself_refuses_what_the_rules_should_have_prevented",
        PURGES + "test_a_purge_passes_over_what_is_being_named",
        PURGES + "test_a_reference_that_was_committed_after_the_page_was_read_survives",
        PURGES + "test_naming_and_purging_from_both_ends",
        "tests/feeds/test_brief_job.py::test_the_database_refuses_to_delete_it",
    ],
    "F19 retention of a million rows": [
        MILLION + "test_a_million_articles_go",
        MILLION + "test_what_is_asked_of_many_rows_has_an_index",
        ARTICLES + "test_many_go_page_by_page_and_those_that_stay_are_passed_over",
        RETENTION + "test_who_is_stopped_on_the_way_has_lost_nothing_and_the_next_one_goes_on",
    ],
}


def test_every_row_is_proved():
    assert [row.split()[0] for row in PROVED_BY] == ["B10", "B11", *(f"F{n}" for n in range(12, 20))]
    assert not_there(name for names in PROVED_BY.values() for name in names) == []
