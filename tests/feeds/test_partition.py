"""Partitioning vectors, compared with the simplest implementation."""

from collections import defaultdict

import numpy
import pytest

from feeds.clustering import partition
from feeds.clustering.partition import Groups, merge_similar
from tests.feeds.clustered import adjusted_rand_index

pytestmark = pytest.mark.once


def of_length_1(rows):
    return (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")


def about_events(number, events, seed, *, dimensions=32, apart=0.25):
    """Return vectors around this many centres; a large `apart` makes the groups overlap."""
    chance = numpy.random.default_rng(seed)
    centres = of_length_1(chance.normal(size=(events, dimensions)))
    return of_length_1(centres[chance.integers(0, events, number)] + apart * chance.normal(size=(number, dimensions)))


def groups_of(vectors, *, sizes=None, fixed=(), **options):
    number = len(vectors)
    sizes = numpy.array(sizes if sizes is not None else [1] * number)
    groups = Groups(vectors.copy(), sizes, numpy.isin(numpy.arange(number), fixed))
    found = defaultdict(set)
    for place, first in enumerate(merge_similar(groups, **options).tolist()):
        found[first].add(place)
    assert all(min(members) == first for first, members in found.items())
    return {frozenset(members) for members in found.values()}


def plainly(vectors, threshold):
    """Merge the two most similar groups, by average similarity, until none are similar enough."""
    similar = (vectors @ vectors.T).astype(float)
    groups = [{place} for place in range(len(vectors))]
    while len(groups) > 1:
        means = [
            (similar[numpy.ix_(sorted(one), sorted(other))].mean(), a, b)
            for a, one in enumerate(groups)
            for b, other in enumerate(groups[:a])
        ]
        nearness, a, b = max(means)
        if nearness < threshold:
            break
        groups[b] |= groups.pop(a)
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.6])
def test_the_groups_are_those_of_average_linkage(seed, threshold):
    vectors = about_events(40, 8, seed)

    assert groups_of(vectors, threshold=threshold) == plainly(vectors, threshold)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_the_vectors_does_not_matter_but_for_ties(seed):
    vectors = about_events(300, 40, seed)
    order = numpy.random.default_rng(seed).permutation(len(vectors))

    shuffled = groups_of(vectors[order], threshold=0.4)

    assert {frozenset(order[list(group)].tolist()) for group in shuffled} == groups_of(vectors, threshold=0.4)


def test_more_rows_than_are_compared_at_once(monkeypatch):
    vectors = about_events(700, 3, seed=1, apart=0.05)
    at_once = groups_of(vectors, threshold=0.5)
    monkeypatch.setattr(partition, "ROWS", 40)
    monkeypatch.setattr(partition, "COLUMNS", 150)

    assert groups_of(vectors, threshold=0.5) == at_once
    assert len(groups_of(vectors, threshold=0.3)) == 3


def test_a_group_counts_as_many_as_it_stands_for():
    left, middle, right = [1.0, 0.0], [0.8, 0.6], [0.0, 1.0]
    vectors = of_length_1(numpy.array([left, middle, right]))

    # With a weight of nine, the middle vector dominates the mean, so the right one joins; it is not similar to the left
    # one.
    assert groups_of(vectors, threshold=0.5, sizes=[1, 9, 1]) == {frozenset({0, 1, 2})}
    assert groups_of(vectors, threshold=0.5, sizes=[9, 1, 1]) == {frozenset({0, 1}), frozenset({2})}


def test_two_that_are_fixed_are_never_merged_nor_what_has_come_to_them():
    vectors = of_length_1(numpy.array([[1.0, 0.1], [1.0, 0.0], [1.0, 0.11], [1.0, 0.01]]))

    assert groups_of(vectors, threshold=0.1, fixed=[0, 1]) == {frozenset({0, 2}), frozenset({1, 3})}
    assert groups_of(vectors[:2], threshold=0.1, fixed=[0, 1]) == {frozenset({0}), frozenset({1})}


def test_those_that_are_all_as_near_are_merged_one_after_the_other():
    vectors = numpy.repeat(of_length_1(numpy.array([[1.0, 2.0]])), 20, axis=0)

    assert groups_of(vectors) == {frozenset(range(20))}


@pytest.mark.parametrize("vectors", [numpy.zeros((0, 4), "<f4"), numpy.eye(1, 4, dtype="<f4")])
def test_none_and_one_are_what_they_are(vectors):
    assert len(groups_of(vectors)) == len(vectors)


def test_what_is_of_no_size_takes_no_part():
    vectors = of_length_1(numpy.array([[1.0, 0.1], [1.0, 0.0], [1.0, 0.11]]))

    assert groups_of(vectors, sizes=[1, 0, 1]) == {frozenset({0, 2}), frozenset({1})}


def test_vectors_of_nothing_are_near_to_nothing():
    vectors = numpy.concatenate([numpy.zeros((3, 4), "<f4"), numpy.eye(1, 4, dtype="<f4")])

    assert len(groups_of(vectors)) == 4


def test_it_ends_when_it_has_compared_enough_with_what_it_has():
    vectors = about_events(300, 3, seed=2)

    some = groups_of(vectors, threshold=0.2, most_comparisons=300 * 300 + 1)
    all_of_them = groups_of(vectors, threshold=0.2)

    assert len(all_of_them) < len(some) < 300
    assert all(any(few <= many for many in all_of_them) for few in some)
    assert some == groups_of(vectors, threshold=0.2, most_comparisons=300 * 300 + 1)


@pytest.mark.parametrize(("blocks", "groups"), [(0, 300), (29, 300), (30 * 30, 2)])
def test_a_first_look_that_is_too_long_ends_too_and_merges_nothing(monkeypatch, blocks, groups):
    monkeypatch.setattr(partition, "ROWS", 10)
    asked = []
    vectors = about_events(300, 3, seed=2, apart=0.05)

    found = groups_of(vectors, threshold=0.2, most_comparisons=10 * 300 * blocks, go_on=lambda: asked.append(1))

    assert len(found) == groups
    assert len(asked) <= blocks + 1


def test_it_asks_between_blocks_whether_to_go_on():
    asked = []

    groups_of(about_events(1100, 3, seed=1), go_on=lambda: asked.append(1))

    assert len(asked) >= 3


@pytest.mark.parametrize(
    ("labels", "others", "index"),
    [
        ("aabb", "xxyy", 1.0),
        ("aaaa", "xxxx", 1.0),
        ("aabb", "xyxy", -0.5),
        ("aabb", "wxyz", 0.0),
        ("aaabbb", "xxyyzz", 0.24242424),
        ("aabc", "xxyy", 0.57142857),
    ],
)
def test_the_adjusted_rand_index_of_partitions_of_which_it_is_known(labels, others, index):
    assert adjusted_rand_index(labels, others) == pytest.approx(index)
    assert adjusted_rand_index(others, labels) == pytest.approx(index)
