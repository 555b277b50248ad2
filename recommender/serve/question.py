"""What a caller of the server may ask: a job that comes with the tool, limits, and offers.

No file is read for a caller: jobs are named, and whatever names a file is left out. Every mistake
is reported at once, under the name of its field.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.limits import parse_limit
from recommender.inputs.units import PROVIDERS, parse_share
from recommender.job.preset_files import presets
from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, MARKETS, Choice, Limits
from recommender.text import shown

Kind = Literal["plan", "frontier", "report"]  # of answer
MAX_MACHINES = 64
MAX_NAMES = 20  # regions, types or names to leave out
NAME = re.compile(r"[A-Za-z0-9.*_+-]{1,64}")
# Field of `Limits`: least and most.
NUMBERS = {
    "deadline_s": (60.0, 315_360_000.0),
    "budget_usd": (0.01, 1e9),
    "hourly_usd": (0.01, 1e6),
    "confidence": (0.05, 0.999),
    "max_overhead": (0.001, 10.0),
}
WORDS = {  # field of `Choice`: what it may be
    "market": tuple(MARKETS),
    "failover": ("none", "zone", "region"),
    "mix": ("auto", "yes", "no"),
}
NAMES = ("regions", "countries", "instances", "deny")  # of `Choice`, lists of names
FILTERS = ("name", "provider", "region", "market", "top")  # of the list of offers
MAX_CHARACTERS, MAX_OFFERS = 64, 1000
OBJECTIVES = ("auto", "cost", "time")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read and bounded."""

    job: str
    limits: Limits
    choice: Choice
    machines: int = 0  # at once, no more and no fewer; 0: as many as are best


def question_of(body: Any) -> Question:
    """A question of decoded JSON.

    Raises:
        UsageError: with every mistake found.
    """
    problems: list[str] = []
    fields = _mapping(body, "the body", ("job", "limits", "choice", "machines"), problems)
    limits = _mapping(fields.get("limits", {}), "limits",
                      (*NUMBERS, "max_machines", "objective"), problems)  # fmt: skip
    choice = _mapping(fields.get("choice", {}), "choice",
                      ("providers", *WORDS, *NAMES), problems)  # fmt: skip
    job = _one_of(fields.get("job"), "job", presets(), problems)
    found = _limits(limits, problems), _choice(choice, problems)
    stated = fields.get("machines")
    machines = 0 if stated is None else _whole(stated, "machines", problems)
    if problems:
        raise UsageError(*problems)
    return Question(job, *found, machines)


def question_of_form(form: Mapping[str, str]) -> Question:
    """A question of the words of a form, as they are typed on the command line."""
    problems: list[str] = []

    def read(name: str, parse: Callable[[str, str], float]) -> float | None:
        word = form.get(name, "").strip()
        try:
            return parse(word, name) if word else None
        except UsageError as error:
            problems.extend(error.problems)
            return None

    job = _one_of(form.get("job"), "job", presets(), problems)
    given = {limit.field: read(limit.name, parse_limit(limit))
             for limit in (DEADLINE, BUDGET, HOURLY)}  # fmt: skip
    sure = read("confidence", lambda word, name: parse_share(word, name, instead="write 95%"))
    if problems:
        raise UsageError(*problems)
    confidence = {} if sure is None else {"confidence": sure}
    stated = {name: value for name, value in given.items() if value is not None}
    return question_of({"job": job, "limits": {**stated, **confidence}})


@dataclass(frozen=True, slots=True)
class OfferFilter:
    """Which offers are listed; "" lets all through."""

    name: str
    provider: str
    region: str
    market: str
    top: int


def filter_of(fields: Iterable[tuple[str, str]], most: int = 20) -> OfferFilter:
    """The filters of an address, each given once at most; `most` offers unless it says otherwise.

    Raises:
        UsageError: with every mistake found.
    """
    problems: list[str] = []
    given: dict[str, str] = {}
    for name, value in fields:
        if name not in FILTERS:
            problems.append(f"unknown filter '{shown(name)}'; known: {', '.join(FILTERS)}")
        elif name in given or len(value) > MAX_CHARACTERS:
            problems.append(f"{name}: give it once, with at most {MAX_CHARACTERS} characters")
        given[name] = value
    for name, known in (("provider", tuple(PROVIDERS)), ("market", tuple(sorted(MARKETS["any"])))):
        if name in given:
            _one_of(given[name], name, known, problems)
    top = given.get("top", f"{most}")
    if re.fullmatch("[1-9][0-9]{0,2}|1000", top) is None:
        problems.append(f"top: write a whole number from 1 to {MAX_OFFERS}")
    if problems:
        raise UsageError(*problems)
    name, provider, region, market = (given.get(each, "") for each in FILTERS[:-1])
    return OfferFilter(name, provider, region, market, int(top))


def _mapping(
    value: Any, name: str, known: tuple[str, ...], problems: list[str]
) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        problems.append(f"{name}: write an object")
        return {}
    problems.extend(
        f"{name}: unknown field '{shown(key)}'; known: {', '.join(known)}"
        for key in value
        if key not in known
    )
    return value


def _one_of(value: Any, name: str, known: tuple[str, ...], problems: list[str]) -> str:
    if isinstance(value, str) and value in known:
        return value
    problems.append(f"{name}: '{shown(value)}' is none of {', '.join(known)}")
    return known[0]


def _limits(given: Mapping[str, Any], problems: list[str]) -> Limits:
    numbers = {
        name: _number(given[name], name, *NUMBERS[name], problems)
        for name in NUMBERS
        if given.get(name) is not None
    }
    machines = _whole(given.get("max_machines", 16), "max_machines", problems)
    objective = _one_of(given.get("objective", "auto"), "objective", OBJECTIVES, problems)
    return Limits(**numbers, max_machines=machines, objective=objective)  # type: ignore[arg-type]


def _whole(value: Any, name: str, problems: list[str]) -> int:
    """A number of machines."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and value in range(1, MAX_MACHINES + 1):  # 3.0 is whole in JSON
        return int(value)
    problems.append(f"{name}: write a whole number from 1 to {MAX_MACHINES}")
    return 1


def _number(value: Any, name: str, least: float, most: float, problems: list[str]) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and least <= value <= most:  # no number of too many digits for a float
        return float(value)
    problems.append(f"{name}: write a number from {least:g} to {most:,.10g}")
    return least


def _choice(given: Mapping[str, Any], problems: list[str]) -> Choice:
    words = {
        name: _one_of(given[name], name, known, problems)
        for name, known in WORDS.items()
        if name in given
    }
    providers = _list(given.get("providers", []), "providers", problems)
    for each in providers:
        _one_of(each, "providers", tuple(PROVIDERS), problems)
    names = {name: _list(given.get(name, []), name, problems) for name in NAMES}
    return Choice(providers=providers, **names, **words)  # type: ignore[arg-type]


def _list(value: Any, name: str, problems: list[str]) -> tuple[str, ...]:
    """Distinct names in the order given."""
    if not isinstance(value, list) or len(value) > MAX_NAMES:
        problems.append(f"{name}: write a list of at most {MAX_NAMES} names")
        return ()
    wrong = [each for each in value if not (isinstance(each, str) and NAME.fullmatch(each))]
    problems.extend(f"{name}: '{shown(each)}' is no name" for each in wrong)
    return () if wrong else tuple(dict.fromkeys(value))
