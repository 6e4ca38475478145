from documents import backoff


def longest(attempt):
    return max(backoff.seconds(attempt) for _ in range(200))


def shortest(attempt):
    return min(backoff.seconds(attempt) for _ in range(200))


def test_waits_grow_twofold_up_to_a_limit():
    assert 4 < longest(1) <= 5
    assert 8 < longest(2) <= 10
    assert 500 < longest(20) <= backoff.LONGEST_SECONDS
    assert longest(10_000) <= backoff.LONGEST_SECONDS


def test_no_wait_is_shorter_than_half_of_the_longest():
    assert shortest(1) >= 2.5
    assert shortest(20) >= backoff.LONGEST_SECONDS / 2


def test_what_failed_together_does_not_come_back_together():
    assert len({backoff.seconds(3) for _ in range(50)}) > 40


def test_the_wish_of_a_server_wins_within_reason():
    assert backoff.seconds(1, retry_after=300) == 300
    assert backoff.seconds(1, retry_after=0) == 0
    assert backoff.seconds(1, retry_after=-5) == 0
    assert backoff.seconds(1, retry_after=10**9) == backoff.LONGEST_RETRY_AFTER_SECONDS
