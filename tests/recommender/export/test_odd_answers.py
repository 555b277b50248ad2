"""An answer with odd figures or empty lists is exported or refused, never an internal error."""

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from recommender.errors import RecommendError, UsageError
from recommender.export.answer_file import answer_of
from recommender.export.targets import TARGETS, export_files
from tests.recommender.optimize.samples import one_in

PRINTED = Path(__file__).parents[2] / "golden_answers" / "printed" / "deadline.json"
PARTS = 4  # of all places, each with a place in four
ODD = (0, -1, 1e999, -1e999, float("nan"), 10**299, "", [], {}, None, True)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value of the first plan, or of the question, stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for name, inner in items:
        yield (*path, name)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, name))


def changed(answer: Any, path: tuple[Any, ...], odd: object) -> Any:
    found = deepcopy(answer)
    at = found
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = odd
    return found


def test_empty_machines_and_infinity_are_refused():
    answer = json.loads(PRINTED.read_text())
    answer["plans"] = answer["plans"][:1]
    for path, odd in (
        (("plans", 0, "machines"), []),
        (("plans", 0, "machines", 0, "count"), float("inf")),
        (("inputs", "limits", "max_machines"), 1e999),
    ):
        with pytest.raises(UsageError, match=str(path[-1])):
            answer_of(changed(answer, path, odd))


@pytest.mark.parametrize("part", one_in(PARTS, PARTS))
def test_odd_values_are_exported_or_refused(part: int):
    answer = json.loads(PRINTED.read_text())
    answer["plans"] = answer["plans"][:1]
    asked = [("inputs", *path) for path in places(answer["inputs"])]
    planned = [("plans", 0, *path) for path in places(answer["plans"][0])]
    for path in (planned + asked)[part::PARTS]:
        for odd in ODD:
            with suppress(RecommendError):
                file = answer_of(changed(answer, path, odd))
                run = file.described(file.named("1"))
                for target in TARGETS:
                    with suppress(RecommendError):
                        export_files(run, target, ".")
