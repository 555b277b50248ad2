"""Every cluster of a set of entries is listed once, however it is listed."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize import compositions as listed
from recommender.optimize.compositions import compositions, count_compositions
from recommender.optimize.space import Site, within_quota
from tests.recommender.optimize.palette import space


def site(entries: int, quota: float, caps: int) -> Site:
    """A site with one quota over all entries, two units for each machine of the first."""
    found = space(5, entries, 4).sites[0]
    use = np.ones((1, entries))
    use[0, 0] = 2.0
    return replace(
        found,
        entries=replace(found.entries, cap=np.full(entries, caps)),
        quota_use=use,
        quota=np.array([quota]),
    )


def by_hand(one: Site, most: int) -> set[tuple[int, ...]]:
    counts = np.array(list(itertools.product(range(1, most + 1), repeat=len(one.entries))))
    counts = counts[(counts.sum(axis=1) <= most) & (counts <= one.entries.cap).all(axis=1)]
    return set(map(tuple, counts[within_quota(one, counts)].tolist()))


@pytest.mark.parametrize(
    ("entries", "most", "quota", "caps"),
    [
        (1, 6, 5.0, 6),
        (2, 9, 1e9, 9),
        (3, 7, 6.0, 7),
        (3, 8, 1e9, 2),
        (4, 6, 1e9, 6),
        (3, 5, 3.0, 5),
    ],
)
@pytest.mark.parametrize("rows", [7, 20_000])
def test_all_counts_that_fit_are_listed_once(
    monkeypatch: pytest.MonkeyPatch, entries: int, most: int, quota: float, caps: int, rows: int
) -> None:
    monkeypatch.setattr(listed, "ROWS", rows)
    one = site(entries, quota, caps)
    found = [tuple(row) for block in compositions(one, most) for row in block.tolist()]
    assert len(found) == len(set(found))
    assert set(found) == {c for c in by_hand(one, most) if max(c) <= caps}
    assert len(found) <= count_compositions(one, most)


def test_tight_quotas_leave_few_counts_to_look_at() -> None:
    assert count_compositions(site(5, 1e9, 64), 64) == 7_624_512
    assert count_compositions(site(5, 4.0, 64), 64) == 2 * 4**4
