"""The rules of the first seed about the execution of jobs, in the order of its sections, each with its proof.

Its APScheduler is django-q2 here, in the role that the design gives it; its rules for one worker hold here for any
number of workers. The rules are in the words of this project.
"""

from dataclasses import MISSING, fields

import pytest
from django.db import connection, models

from schedules.jobs import Job, all_jobs
from schedules.models import JobRun
from tests.covered import not_there

CRON = "tests/schedules/test_cron.py::"
FIRING = "tests/schedules/test_firing.py::"
LANE = "tests/schedules/test_lane.py::"
LEASE = "tests/schedules/test_lease.py::"
ASKING = "tests/schedules/test_asking.py::"
SCHEDULES = "tests/schedules/test_schedules.py::"
HERE = "tests/schedules/test_seed_001.py::"
ROWS = "tests/schedules/test_job_runs.py::"
WORKERS = "tests/workers/test_jobs.py::"
BOOTS = "tests/work/test_boots.py::"
RACE = "tests/races/test_slots_at_scale.py::"
STALE = "tests/races/test_stale_slots.py::"
COMMAND = "tests/commands/test_job.py::"
BROKEN = "tests/test_constraints.py::test_the_database_refuses_a_row_that_breaks"
STORING = "tests/feeds/test_storing.py::"
INGESTION = "tests/feeds/test_ingestion.py::"
CLUSTERING = "tests/feeds/test_clustering.py::"
AT_ONCE = "tests/feeds/test_clustering_at_once.py::"
ARTICLES = "tests/feeds/retention/test_articles.py::"
RETENTION = "tests/feeds/retention/test_job.py::"
PURGES = "tests/races/test_article_retention.py::"
RULES = "tests/feeds/retention/test_rules.py::"
SWEEP = "tests/sweep/test_crash_points.py::"

PROVED_BY = {
    "1 no scheduled execution happens twice": [
        RACE + "test_schedulers_that_claim_the_same_slots_claim_each_once",
        RACE + "test_schedulers_that_look_at_the_same_schedules_run_each_slot_once",
        SCHEDULES + "test_many_at_once_hand_over_each_slot_once",
    ],
    "1 a crash or a restart does no harm": [
        WORKERS + "test_the_slot_of_a_killed_worker_has_failed_when_it_starts_again_and_the_next_one_goes_on",
        SCHEDULES + "test_a_decision_stays_when_the_process_dies_before_it_rings_for_workers",
    ],
    "1 ingestion may be repeated": [INGESTION + "test_the_next_slot_stores_nothing_again"],
    "1 it is clear who does what": [
        SCHEDULES + "test_the_web_does_not_even_load_its_scheduler",
        "tests/test_shape.py::test_every_command_is_documented",
    ],
    "2 the worker alone runs scheduled jobs": [
        WORKERS + "test_what_is_triggered_is_run_and_whoever_waits_is_told",
        SCHEDULES + "test_a_tick_fires_what_is_due_and_puts_its_schedule_to_the_next_slot",
    ],
    "2 the web process never runs a scheduler": [
        SCHEDULES + "test_the_web_does_not_even_load_its_scheduler",
        SCHEDULES + "test_it_is_switched_off_in_every_process",
    ],
    "3 one scheduler is active": [
        LEASE + "test_a_second_one_has_not",
        LEASE + "test_of_many_at_once_one_gets_it",
        SCHEDULES + "test_of_two_workers_one_ticks",
        WORKERS + "test_of_workers_that_all_look_at_the_schedules_one_runs_the_slot",
    ],
    "3 a slot of a job is claimed at most once": [
        ROWS + "test_a_slot_that_has_ended_stays_taken",
        LANE + "test_of_two_workers_one_gets_the_slot",
        RACE + "test_schedulers_that_claim_the_same_slots_claim_each_once",
    ],
    "3 one job does not run twice at a time": [
        ROWS + "test_a_job_that_is_running_gets_no_second_slot",
        LANE + "test_a_job_that_runs_has_its_next_slot_wait_and_does_not_hold_up_others",
        "tests/runs/test_invariants.py::test_slots_that_overlap",
    ],
    "3 a restart after a crash is safe": [
        ROWS + "test_a_slot_is_never_claimed_again_after_its_rescue",
        WORKERS + "test_the_slot_of_a_killed_worker_has_failed_when_its_lease_is_over_for_another",
    ],
    "3 ingestion and clustering may be repeated": [
        INGESTION + "test_the_next_slot_stores_nothing_again",
        CLUSTERING + "test_again_is_nothing",
    ],
    "3 what it does not promise, hosts that act together, holds here by the rows": [
        RACE + "test_schedulers_that_look_at_the_same_schedules_run_each_slot_once",
        "tests/schedules/test_time.py::test_hosts_whose_clocks_differ_agree_on_slots_and_leases",
    ],
    "4 the jobs are ingestion, clustering and retention": [
        INGESTION + "test_the_job_is_declared",
        CLUSTERING + "test_the_job_says_when_it_runs",
        RETENTION + "test_it_is_declared_with_everything_said",
        HERE + "test_every_job_says_everything",
    ],
    "5 the table of job runs has these columns": [HERE + "test_the_table_is_that_of_the_contract"],
    "5 a slot is unique, status and start have an index": [
        HERE + "test_the_table_has_the_constraint_and_the_indexes_of_the_contract",
        BROKEN,
    ],
    "6.1 the slot is a moment in UTC, the same for whoever computes it": [
        CRON + "test_wherever_one_begins_to_look_the_slots_are_the_same",
        CRON + "test_slots_are_read_off_the_clocks_of_the_zone",
    ],
    "6.2 a stale row of the job is given up before": [
        FIRING + "test_a_slot_that_runs_for_too_long_is_given_up_before_the_next_one",
        ROWS + "test_a_slot_that_runs_for_too_long_is_given_up",
    ],
    "6.3 the claim is an insert": [
        ROWS + "test_a_slot_is_claimed_by_its_row",
        LANE + "test_a_due_slot_becomes_a_run_of_its_job",
    ],
    "6.4 a slot that is taken is skipped": [
        ROWS + "test_a_slot_that_is_running_is_taken",
        LANE + "test_a_slot_that_somebody_else_has_claimed_is_not_run_again",
    ],
    "6.5 then the job is executed": [LANE + "test_a_job_is_done_and_its_rows_are_counted"],
    "6.6 a success has its end": [ROWS + "test_a_slot_succeeds"],
    "6.7 a failure has its reason and its end": [
        ROWS + "test_a_slot_fails_with_its_reason",
        LANE + "test_a_job_that_fails_says_why",
    ],
    "7 after a crash the row says running": [
        WORKERS + "test_the_slot_of_a_killed_worker_has_failed_when_its_lease_is_over_for_another",
        SWEEP + "test_nothing_is_lost_doubled_or_stuck",
    ],
    "7 a stale one is given up at the next slot, which goes on": [
        ROWS + "test_the_next_slot_is_free_when_a_stale_one_was_given_up",
        STALE + "test_the_next_slot_of_the_job_goes_on_when_one_is_given_up",
        STALE + "test_an_end_that_comes_second_is_refused",
    ],
    "7 stale is twice as long as it may take": [
        "tests/schedules/test_time.py::test_a_slot_that_takes_longer_than_it_may_is_given_up_at_twice_that",
        ROWS + "test_a_slot_within_its_time_is_left_alone",
    ],
    "7.1 before the first claim a worker finds what an earlier one of its name has left": [
        BOOTS + "test_what_a_dead_boot_of_its_name_holds_is_recovered_at_once",
        BOOTS + "test_what_may_be_held_by_a_living_worker_is_left_to_its_lease",
    ],
    "7.1 it has failed, with the words for it": [
        ROWS + "test_a_slot_that_an_earlier_boot_left_has_failed_in_the_words_of_the_contract",
        WORKERS + "test_the_slot_of_a_killed_worker_has_failed_when_it_starts_again_and_the_next_one_goes_on",
    ],
    "7.1 the recovery is logged and counted": [ROWS + "test_a_start_logs_how_many_slots_an_earlier_boot_had_left"],
    "8.1 the URL of an article is unique": [BROKEN, STORING + "test_a_url_in_many_spellings_is_one_article"],
    "8.1 a duplicate fails alone": [
        STORING + "test_what_somebody_else_stores_meanwhile_is_a_duplicate",
        STORING + "test_two_feeds_bring_the_same_at_once",
    ],
    "8.1 the loop goes on over duplicates": [
        STORING + "test_the_same_again_changes_nothing",
        STORING + "test_an_article_of_another_feed_is_there_already",
        STORING + "test_what_the_database_refuses_does_not_lose_the_others",
    ],
    "8.1 ingestion is safe to be run again": [
        INGESTION + "test_the_next_slot_stores_nothing_again",
        INGESTION + "test_two_feeds_bring_the_same_at_once",
    ],
    "8.2 an article is in a cluster once": [
        BROKEN,
        AT_ONCE + "test_several_processes_at_once_put_each_article_into_one_cluster",
    ],
    "8.2 looking again doubles no link": [
        CLUSTERING + "test_again_is_nothing",
        AT_ONCE + "test_who_comes_second_finds_the_articles_in_a_cluster_and_counts_none_of_them",
    ],
    "8.2 the count grows only with a link": [AT_ONCE + "test_threads_at_once_count_what_is_linked"],
    "8.2 clustering is safe to be run again": [
        CLUSTERING + "test_a_slot_that_was_interrupted_is_gone_on_with",
        AT_ONCE + "test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing",
    ],
    "8.3 only tables that may be purged are": [
        RETENTION + "test_only_rows_of_tables_that_are_allowed_are_deleted",
        RULES + "test_a_table_in_both_lists_is_refused",
        RULES + "test_a_reference_that_nobody_has_thought_of_is_refused",
    ],
    "8.3 what an immutable table refers to stays": [
        ARTICLES + "test_what_a_brief_names_is_never_deleted",
        ARTICLES + "test_the_database_itself_refuses_what_the_rules_should_have_prevented",
    ],
    "8.3 it happens in a transaction": [
        "tests/races/test_article_retention.py::test_a_reference_that_was_committed_after_the_page_was_read_survives"
    ],
    "8.3 how many went is logged": [RETENTION + "test_all_that_is_due_goes_and_is_counted"],
    "8.3 it is safe to be run again": [
        RETENTION + "test_it_is_done_again_without_any_effect",
        RETENTION + "test_who_is_stopped_on_the_way_has_lost_nothing_and_the_next_one_goes_on",
    ],
    "9 one instance of a job at most": [
        SCHEDULES + "test_an_overrunning_job_is_not_started_again",
        ROWS + "test_a_job_that_is_running_gets_no_second_slot",
    ],
    "9 whether it coalesces and its grace are said of each job": [HERE + "test_every_job_says_everything"],
    "9 ingestion and clustering coalesce, with a grace of five minutes": [
        INGESTION + "test_the_job_is_declared",
        CLUSTERING + "test_the_job_says_when_it_runs",
        FIRING + "test_of_slots_that_were_missed_the_latest_is_kept_and_tells_of_the_others",
        FIRING + "test_the_grace_is_what_the_job_declares_to_the_second",
    ],
    "9 the scheduler does not take the place of claims": [
        SCHEDULES + "test_a_schedule_that_is_deleted_paused_or_late_costs_no_slot",
        SCHEDULES + "test_nothing_is_put_into_a_queue",
    ],
    "10 what is run by hand obeys the same rule": [
        ASKING + "test_a_slot_that_has_a_row_is_taken",
        ASKING + "test_whoever_asks_while_the_slot_is_being_claimed_is_told_of_its_run",
        COMMAND + "test_a_slot_that_has_a_run_is_taken",
    ],
    "10 it claims a slot that is said": [
        ASKING + "test_a_slot_is_run_by_its_moment",
        ASKING + "test_now_is_no_slot_of_the_schedule",
        COMMAND + "test_a_slot_of_the_schedule_is_run",
    ],
    "10 nobody gets past the checks": [
        ASKING + "test_of_two_who_ask_for_a_slot_one_gets_it",
        "tests/schedules/test_why.py::test_no_gate_holds_exactly_what_a_claim_takes",
    ],
    "11 start, end, duration, rows and errors are logged": [
        LANE + "test_start_end_duration_rows_and_errors_are_logged"
    ],
    "11 job runs are the log of all that ran": [
        "tests/schedules/test_ledger.py::test_in_any_history_each_slot_is_there_once_and_moves_on_as_slots_do",
        COMMAND + "test_the_ledger_tells_of_each_slot",
    ],
    "12 one claim of a slot succeeds": [
        "tests/runs/test_invariants.py::test_a_slot_that_has_succeeded_twice",
        RACE + "test_schedulers_that_look_at_the_same_schedules_run_each_slot_once",
    ],
    "12 no runs overlap": [
        "tests/runs/test_invariants.py::test_slots_that_overlap",
        RACE + "test_schedulers_that_look_at_the_same_schedules_run_each_slot_once",
    ],
    "12 a restart is safe": [
        WORKERS + "test_a_worker_that_is_told_to_end_finishes_its_slot_and_begins_no_other",
        WORKERS + "test_a_worker_that_is_told_again_gives_up_its_slot",
    ],
    "12 no data is there twice": [
        INGESTION + "test_the_next_slot_stores_nothing_again",
        AT_ONCE + "test_threads_at_once_count_what_is_linked",
        ARTICLES + "test_it_is_done_again_without_any_effect",
    ],
    "12 exactly once is not what it means: a slot that dies has failed": [
        ROWS + "test_a_slot_is_never_claimed_again_after_its_rescue",
    ],
    "13 beyond one host a leader is elected in the database": [
        LEASE + "test_it_goes_to_another_when_it_has_run_out",
        LEASE + "test_it_goes_to_another_at_once_when_its_worker_has_stopped",
    ],
    "13 workers may do different jobs": [
        WORKERS + "test_a_worker_that_is_not_to_look_at_schedules_runs_what_others_hand_over",
        LANE + "test_a_job_of_another_version_of_the_code_is_left_to_it",
    ],
}


def test_every_section_is_there():
    sections = {rule.split()[0] for rule in PROVED_BY}

    assert {section.partition(".")[0] for section in sections} == {str(number) for number in range(1, 14)}
    assert {"6.1", "6.2", "6.3", "6.4", "6.5", "6.6", "6.7", "7.1", "8.1", "8.2", "8.3"} <= sections


def test_every_rule_is_proved():
    assert all(PROVED_BY.values())
    assert not_there({name for names in PROVED_BY.values() for name in names}) == []


def test_every_job_says_everything():
    """Section 9: no field of a job has a default."""
    assert [field.name for field in fields(Job) if field.default is not MISSING] == []
    assert all(isinstance(job, Job) for job in all_jobs())


@pytest.mark.django_db
def test_the_table_is_that_of_the_contract():
    """Section 5: the columns exist, and no other column duplicates one of them."""
    with connection.cursor() as cursor:
        found = {each.name: each for each in connection.introspection.get_table_description(cursor, "job_runs")}

    wanted = {
        "job_name": (models.CharField, 128, False),
        "scheduled_for": (models.DateTimeField, None, False),
        "started_at": (models.DateTimeField, None, True),
        "finished_at": (models.DateTimeField, None, True),
        "status": (models.CharField, 16, False),
        "worker_instance": (models.CharField, 128, True),
        "error_message": (models.TextField, None, False),
    }
    for name, (kind, length, may_be_null) in wanted.items():
        field = JobRun._meta.get_field(name)
        assert (type(field), field.max_length, found[name].null_ok) == (kind, length, may_be_null), name
    assert JobRun._meta.pk.name == "id"
    assert JobRun.Status.values == ["running", "success", "failed", "skipped_timeout"]


@pytest.mark.django_db
def test_the_table_has_the_constraint_and_the_indexes_of_the_contract():
    """Section 5: the constraints and indexes exist."""
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "job_runs").values()

    assert any(each["unique"] and each["columns"] == ["job_name", "scheduled_for"] for each in found)
    assert any(each["unique"] and each["columns"] == ["job_name"] for each in found)
    for column in ("status", "started_at"):
        assert any(each["index"] and each["columns"] == [column] for each in found), column
