"""What a caller of the server may ask: a job that comes with the tool, limits, and offers.

No file is read for a caller: jobs are named, and whatever names a file is left out. Every mistake
is reported at once, under the name of its field.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import CLOUDS
from recommender.errors import UsageError
from recommender.inputs.limits import parse_limit
from recommender.inputs.training_software import software
from recommender.inputs.units import PROVIDERS, parse_count, parse_share
from recommender.job.preset_files import presets
from recommender.networks.known_models import find_known, known_models
from recommender.plan.limits import (
    ACCOUNTS,
    BUDGET,
    DEADLINE,
    HOURLY,
    MARKETS,
    Choice,
    Limits,
    QuotaLimit,
)
from recommender.text import nearest, shown

Kind = Literal["plan", "frontier", "report"]  # of answer
FIELDS = ("job", "limits", "choice", "machines", "measured", "quotas")
MAX_MACHINES = 64
MOST_LISTED = 30  # values that an error lists
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


# Of one's own job: what numbers may be, and words. No model is a file: it is one that is known.
AMOUNTS = {
    "examples": (1.0, 1e13),
    "tokens": (1.0, 1e16),
    "epochs": (0.001, 1e6),
    "steps": (1.0, 1e10),
    "seq_len": (1.0, 1e8),
    "image_size": (1.0, 1e5),
    "batch": (1.0, 1e9),
    "lora_rank": (1.0, 1e5),
}
SETTINGS = {
    "model": tuple(model.name for model in known_models()),
    "method": ("full", "lora", "qlora"),
    "stack": tuple(software()),
    "precision": ("auto", "mixed", "fp8", "bf16", "fp16", "tf32", "fp32"),
}
TIMING = re.compile(r"[A-Za-z0-9 ._+-]{1,60}: {0,3}[0-9.]{1,15}[A-Za-z /%]{1,20}")
QUOTA = {"provider": tuple(PROVIDERS), "market": ("any", "spot", "on_demand"),
         "unit": ("vcpu", "gpu", "machine")}  # fmt: skip
FAMILY = re.compile(r"[A-Za-z0-9 .,*_+()/-]{1,80}")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read and bounded."""

    job: str  # a preset; "" of one's own
    limits: Limits
    choice: Choice
    machines: int = 0  # at once, no more and no fewer; 0: as many as are best
    own: tuple[tuple[str, str], ...] = ()  # what is stated of one's own job, as flags
    measured: tuple[str, ...] = ()  # "8xH100: 3.1 s/step"
    account: str = ""  # "default-new", "granted": instead of quotas


def question_of(body: Any) -> Question:
    """A question of decoded JSON.

    Raises:
        UsageError: with every mistake found.
    """
    problems: list[str] = []
    fields = _mapping(body, "the body", FIELDS, problems)
    limits = _mapping(fields.get("limits", {}), "limits",
                      (*NUMBERS, "max_machines", "objective"), problems)  # fmt: skip
    choice = _mapping(fields.get("choice", {}), "choice",
                      ("providers", *WORDS, *NAMES), problems)  # fmt: skip
    own = isinstance(fields.get("job"), dict)
    job = "" if own else _one_of(fields.get("job"), "job", presets(), problems)
    stated_job = _own_job(fields["job"], problems) if own else ()
    found = _limits(limits, problems), _choice(choice, problems)
    stated = fields.get("machines")
    machines = 0 if stated is None else _whole(stated, "machines", problems)
    measured = _list(fields.get("measured", []), "measured", problems, TIMING)
    account, quotas = _quotas(fields.get("quotas", []), problems)
    if problems:
        raise UsageError(*problems)
    limited = replace(found[1], quotas=quotas, quotas_known=bool(quotas or account))
    return Question(job, found[0], limited, machines, stated_job, measured, account)


def _own_job(given: Any, problems: list[str]) -> tuple[tuple[str, str], ...]:
    """One's own job as the flags of the command line: a known model, and how much of what."""
    fields = _mapping(given, "job", (*SETTINGS, *AMOUNTS), problems)
    words = [
        (name, _one_of(fields[name], f"job.{name}", known, problems))
        for name, known in SETTINGS.items()
        if name in fields
    ]
    numbers = [
        (name, f"{_number(fields[name], f'job.{name}', *bounds, problems):.15g}")
        for name, bounds in AMOUNTS.items()
        if name in fields
    ]
    if "model" not in fields:
        problems.append("job: state its model")
    if not {"examples", "tokens"} & set(fields):
        problems.append("job: state examples or tokens")
    return (*words, *numbers)


def _quotas(given: Any, problems: list[str]) -> tuple[str, tuple[QuotaLimit, ...]]:
    """A word that stands for an account's quotas, or a list of them."""
    if isinstance(given, str):
        return _one_of(given, "quotas", tuple(ACCOUNTS.values()), problems), ()
    if not isinstance(given, list) or len(given) > MAX_NAMES:
        problems.append(f"quotas: write a list of at most {MAX_NAMES}, or default-new or granted")
        return "", ()
    return "", tuple(_quota(each, f"quotas[{i}]", problems) for i, each in enumerate(given))


def _quota(given: Any, name: str, problems: list[str]) -> QuotaLimit:
    fields = _mapping(given, name, ("family", "amount", "region", *QUOTA), problems)
    provider = _one_of(fields.get("provider"), f"{name}.provider", QUOTA["provider"], problems)
    usual = {
        "market": "any",
        "unit": CLOUDS[provider].quota_unit if provider in CLOUDS else "machine",
    }
    words = {
        key: _one_of(fields.get(key, default), f"{name}.{key}", QUOTA[key], problems)
        for key, default in usual.items()
    }
    (family,) = _list([fields.get("family")], f"{name}.family", problems, FAMILY) or ("",)
    regions = [fields["region"]] if "region" in fields else []
    region = "".join(_list(regions, f"{name}.region", problems))
    amount = _number(fields.get("amount"), f"{name}.amount", 0.0, 1e7, problems)
    return QuotaLimit(provider, family, region=region, amount=amount, **words)  # type: ignore[arg-type]


Reader = Callable[[str, Callable[[str, str], float]], float | None]


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

    job: Any = form.get("job") or None
    if form.get("model", "").strip():
        job = _own_of_form(form, read)
    given = {limit.field: read(limit.name, parse_limit(limit))
             for limit in (DEADLINE, BUDGET, HOURLY)}  # fmt: skip
    sure = read("confidence", lambda word, name: parse_share(word, name, instead="write 95%"))
    if problems:
        raise UsageError(*problems)
    confidence = {} if sure is None else {"confidence": sure}
    stated = {name: value for name, value in given.items() if value is not None}
    timings = [line.strip() for line in form.get("measured", "").splitlines() if line.strip()]
    return question_of({
        "job": job, "limits": {**stated, **confidence}, "measured": timings,
        "quotas": form.get("account") or _quotas_of_form(form.get("quotas", "")),
    })  # fmt: skip


def _own_of_form(form: Mapping[str, str], read: Reader) -> dict[str, Any]:
    """One's own job; a model may be written without its owner, in any case."""
    word = form["model"].strip()
    model = find_known(word)
    words = {name: form[name] for name in ("method", "stack", "precision") if form.get(name)}
    found = {name: read(name, parse_count) for name in AMOUNTS}
    amounts = {name: amount for name, amount in found.items() if amount is not None}
    return {"model": word if model is None else model.name, **words, **amounts}


def stated(question: Question) -> dict[str, str]:
    """The words of a form that ask a question again, but for its limits."""
    quotas = (
        ", ".join(filter(None, (q.provider, q.quota_family, f"{q.amount:.0f}", q.region)))
        for q in question.choice.quotas
    )
    found = {
        **({"job": question.job} if question.job else {}),
        **dict(question.own),
        "measured": "\n".join(question.measured),
        "account": question.account,
        "quotas": "\n".join(quotas),
    }
    return {name: words for name, words in found.items() if words}


def _quotas_of_form(lines: str) -> list[Any]:
    """Quotas, one on a line: "aws, p, 192" and, if it holds in one region only, the region."""
    found: list[Any] = []
    for line in filter(str.strip, lines.splitlines()):
        provider, family, amount, *rest = (*(each.strip() for each in line.split(",")), "", "")[:5]
        number = amount if re.fullmatch(r"[0-9]{1,7}", amount) is None else float(amount)
        region = {"region": rest[0]} if rest and rest[0] else {}
        found.append({"provider": provider, "family": family, "amount": number, **region})
    return found


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
    near = nearest(f"{value}", known) if len(known) > MOST_LISTED else ""
    listed = (
        f"{', '.join(known[:MOST_LISTED])}, …" if len(known) > MOST_LISTED else ", ".join(known)
    )
    meant = f"; did you mean {near}?" if near else ""
    problems.append(f"{name}: '{shown(value)}' is none of {listed}{meant}")
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


def _list(
    value: Any, name: str, problems: list[str], pattern: re.Pattern[str] = NAME
) -> tuple[str, ...]:
    """Distinct names in the order given."""
    if not isinstance(value, list) or len(value) > MAX_NAMES:
        problems.append(f"{name}: write a list of at most {MAX_NAMES} names")
        return ()
    wrong = [each for each in value if not (isinstance(each, str) and pattern.fullmatch(each))]
    problems.extend(f"{name}: '{shown(each)}' is not of the form asked for" for each in wrong)
    return () if wrong else tuple(dict.fromkeys(value))
