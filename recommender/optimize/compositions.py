"""Lists the clusters of a set of entries: positive counts within quotas and the machines allowed.

There are C(most, k) counts of k entries that sum to at most `most`: a million for four entries and
64 machines. Where quotas allow few machines of each entry the counts up to these are fewer, and are
listed instead.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import comb, prod

import numpy as np

from recommender.arrays import Ints
from recommender.optimize.space import Site, most_machines, within_quota

ROWS = 20_000  # clusters in one block


def count_compositions(site: Site, most: int) -> int:
    """How many counts have to be looked at to list the clusters that use every entry of a site."""
    caps: list[int] = most_machines(site, most).tolist()
    return min(prod(caps), comb(most, len(caps)))


def compositions(site: Site, most: int) -> Iterator[Ints]:
    """The clusters of at most `most` machines that use every entry of a site, in blocks."""
    caps: list[int] = most_machines(site, most).tolist()
    few = prod(caps) <= comb(most, len(caps))
    for counts in _up_to(caps, most) if few else _summing(most, len(caps)):
        kept = counts[within_quota(site, counts)]
        if len(kept):
            yield kept


def _up_to(caps: list[int], most: int) -> Iterator[Ints]:
    """All counts from 1 to the cap of each entry that sum to at most `most`."""
    total = prod(caps)
    for start in range(0, total, ROWS):
        index = np.arange(start, min(start + ROWS, total))
        counts = 1 + np.stack(np.unravel_index(index, caps), axis=1)
        yield counts[counts.sum(axis=1) <= most]


def _summing(most: int, parts: int) -> Iterator[Ints]:
    """All positive counts of `parts` entries that sum to at most `most`.

    Choosing `parts` cut points among 1 ... most gives each exactly once. Sets that fit one block
    are listed once for all sites.
    """
    if comb(most, parts) <= ROWS:
        yield _block(most, parts)
        return
    block = []
    for cuts in combinations(range(1, most + 1), parts):
        block.append(cuts)
        if len(block) == ROWS:
            yield _parts(block)
            block = []
    if block:
        yield _parts(block)


@lru_cache(maxsize=32)
def _block(most: int, parts: int) -> Ints:
    return _parts(list(combinations(range(1, most + 1), parts)))


def _parts(cuts: list[tuple[int, ...]]) -> Ints:
    """Differences of neighbouring cut points, the first counted from 0."""
    ends = np.array(cuts, dtype=np.int64)
    starts = np.concatenate([np.zeros((len(ends), 1), dtype=np.int64), ends[:, :-1]], axis=1)
    return np.asarray(ends - starts)
