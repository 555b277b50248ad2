"""The linear program of the best plan's region, as a file for any solver (`--save-lp`)."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from recommender.errors import UsageError
from recommender.market.sites import Built
from recommender.optimize.found import Candidate
from recommender.question import Question
from recommender.text import shown_path


def save_program(question: Question, built: Built, best: Candidate, path: Path) -> None:
    """Write the program; raises UsageError where the file cannot be written."""
    from recommender.optimize.certificate import write_lp

    space = question.space(built)
    site, used = space.sites[best.site], np.array(best.entries)
    counts = np.zeros(len(site.entries), dtype=np.int64)
    counts[used] = best.counts
    rows = np.flatnonzero(site.entries.region == site.entries.region[used[0]])
    region = question.catalog.offers.region[int(site.entries.offer[used[0]])]
    local = replace(site.only(rows), region=region)
    try:
        write_lp(space, local, path, best.goal, counts[rows])
    except OSError as error:
        raise UsageError(
            f"--save-lp {shown_path(path)}: cannot be written ({error.strerror}); name another"
        ) from None
