"""Another try where a disk fails for a moment or does not yet show what was written to it."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

# 63 s together: a client of NFS shows names and sizes as they were at most 60 s ago (acregmax and
# acdirmax, nfs(5), read 2026-11).
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_LOG = logging.getLogger("recommender.train")
_T = TypeVar("_T")


def patiently(act: Callable[[], _T], good: Callable[[_T], bool] = lambda found: True) -> _T:
    """What a call gives, tried again while it fails or its answer is not good.

    Raises:
        OSError: it also failed at the last try.
    """
    for pause_s in PAUSES_S:
        try:
            found = act()
        except OSError as error:
            _LOG.warning("%s; trying again in %g s", error, pause_s)
        else:
            if good(found):
                return found
        time.sleep(pause_s)
    return act()
