"""The bounds of sites that are searched for mixes, made when a site's turn comes.

A search that ends with a gap looks at few of a hundred regions: of the others it need only be known
that their bounds are higher.
"""

from dataclasses import field
from functools import cached_property

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.site import SiteBounds, lines_of, site_bounds_of
from recommender.optimize.entry_sets import bounds_with_each, first
from recommender.optimize.space import Space
from recommender.performance.step_bounds import Shortest


@dataclass(frozen=True)
class MixedSites:
    """The bounds of some sites of a space, by the place of the site."""

    space: Space
    quick: bool  # as in `billed_share_of`
    bounds: dict[int, SiteBounds] = field(default_factory=dict)
    with_each: dict[int, Floats] = field(default_factory=dict)  # `bounds_with_each`

    @cached_property
    def _lines(self) -> Shortest:
        return lines_of(self.space)

    def opened(self, index: int, cutoff: float) -> list[tuple[float, tuple[int, ...]]]:
        """The sets that a site is divided into, each with its bound, as far as below the cutoff.

        At first the site as a whole, as the set without entries, has a closer bound; next come its
        entries, each alone.
        """
        if index in self.bounds:
            known = self.bounds[index], cutoff, self.with_each.pop(index)
            self.bounds[index], alone = first(*known)
            return alone
        found = site_bounds_of(self.space, self.space.sites[index], self._lines, quick=self.quick)
        if found is None:
            return []
        with_each = bounds_with_each(found, cutoff)
        self.bounds[index], self.with_each[index] = found, with_each
        least = float(with_each.min(initial=np.inf))
        return [(least, ())] if least < cutoff else []
