"""Every study, in the order of the table."""

from collections.abc import Sequence

from recommender.accuracy import cmdare, laboratories, other_gpu, training
from recommender.accuracy.study import Study
from recommender.errors import UsageError
from recommender.text import unknown

STUDIES: tuple[Study, ...] = (
    *cmdare.STUDIES,
    *training.STUDIES,
    *laboratories.STUDIES,
    *other_gpu.STUDIES,
)


def chosen(words: Sequence[str]) -> tuple[Study, ...]:
    """Studies whose key begins with one of the words; all without words.

    Raises `UsageError` for a word that begins no key.
    """
    wrong = [w for w in words if not any(s.key.startswith(w.lower()) for s in STUDIES)]
    if wrong:
        raise UsageError("\n".join(unknown("study", w, [s.key for s in STUDIES]) for w in wrong))
    return tuple(s for s in STUDIES if not words or s.key.startswith(tuple(map(str.lower, words))))
