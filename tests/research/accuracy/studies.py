"""Every study, in the order of the table."""

from collections.abc import Sequence

from recommender.errors import UsageError
from recommender.text import unknown
from tests.research.accuracy import (
    cmdare,
    finetuning,
    laboratories,
    later,
    later_scaling,
    layout_order,
    lifetimes,
    long_sequences,
    machine_links,
    other_gpu,
    other_precision,
    parallel,
    pipelines,
    published_scaling,
    recipes,
    scaling,
    shared_sequences,
    spot_gangs,
    spot_jobs,
    spot_runs,
    spot_zones,
    training,
    whole_runs,
)
from tests.research.accuracy.study import Study

STUDIES: tuple[Study, ...] = (
    *training.STUDIES,
    *laboratories.STUDIES,
    *later.STUDIES,
    *later_scaling.STUDIES,
    *finetuning.STUDIES,
    *whole_runs.STUDIES,
    *other_gpu.STUDIES,
    *other_precision.STUDIES,
    *published_scaling.STUDIES,
    *scaling.STUDIES,
    *machine_links.STUDIES,
    *pipelines.STUDIES,
    *parallel.STUDIES,
    *shared_sequences.STUDIES,
    *long_sequences.STUDIES,
    *recipes.STUDIES,
    *layout_order.STUDIES,
    *cmdare.STUDIES,
    *spot_runs.STUDIES,
    *spot_zones.STUDIES,
    *spot_gangs.STUDIES,
    *spot_jobs.STUDIES,
    *lifetimes.STUDIES,
)


def chosen(words: Sequence[str]) -> tuple[Study, ...]:
    """Studies whose key begins with one of the words; all without words.

    Raises `UsageError` for a word that begins no key.
    """
    wrong = [w for w in words if not any(s.key.startswith(w.lower()) for s in STUDIES)]
    if wrong:
        raise UsageError("\n".join(unknown("study", w, [s.key for s in STUDIES]) for w in wrong))
    return tuple(s for s in STUDIES if not words or s.key.startswith(tuple(map(str.lower, words))))
