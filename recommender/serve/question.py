"""What a caller of the server may ask: a job that comes with the tool, limits, and offers.

No file is read for a caller: jobs are named, and whatever names a file is left out. Every mistake
is reported at once, under the name of its field.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
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


Schema = dict[str, Any]


def _closed(properties: Mapping[str, Schema], *required: str) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needed}


def _numbers(bounds: Mapping[str, tuple[float, float]], kind: str | list[str]) -> dict[str, Schema]:
    return {n: {"type": kind, "minimum": a, "maximum": b} for n, (a, b) in bounds.items()}


def _words(known: Mapping[str, Iterable[str]]) -> dict[str, Schema]:
    return {name: {"enum": list(words)} for name, words in known.items()}


def _list(items: Schema) -> Schema:
    return {"type": "array", "maxItems": MAX_NAMES, "items": items}


def _text(pattern: re.Pattern[str]) -> Schema:
    return {"type": "string", "pattern": f"^{pattern.pattern}$"}


@cache
def schema() -> Schema:
    """The body of a question as JSON Schema: what is checked is what is described."""
    machines = {"type": "integer", "minimum": 1, "maximum": MAX_MACHINES}
    names = _list(_text(NAME))
    limits = _numbers(NUMBERS, ["number", "null"]) | {"max_machines": machines}
    choice = {"providers": _list({"enum": list(PROVIDERS)}), **_words(WORDS)}
    own = _closed(_words(SETTINGS) | _numbers(AMOUNTS, "number"), "model")
    own["anyOf"] = [{"required": ["examples"]}, {"required": ["tokens"]}]
    amount = {"type": "number", "minimum": 0.0, "maximum": 1e7}
    more = {"family": _text(FAMILY), "region": _text(NAME), "amount": amount}
    quota = _closed(_words(QUOTA) | more, "provider", "family", "amount")
    fields: dict[str, Schema] = {
        "job": {"anyOf": [{"enum": list(presets())}, own]},
        "limits": _closed(limits | _words({"objective": OBJECTIVES})),
        "choice": _closed(choice | dict.fromkeys(NAMES, names)),
        "machines": {**machines, "type": ["integer", "null"]},
        "measured": _list(_text(TIMING)),
        "quotas": {"anyOf": [{"enum": list(ACCOUNTS.values())}, _list(quota)]},
    }
    return _closed(fields, "job")


def _problems(value: Any, kind: Schema, name: str) -> Iterator[str]:
    """What is wrong with a value of a schema, under its name."""
    if "anyOf" in kind and "properties" not in kind:  # a word, or what it stands for
        word, other = kind["anyOf"]
        kind = other if isinstance(value, (dict, list)) else word
    if "enum" in kind:
        yield from _none_of(value, name, kind["enum"])
    elif "properties" in kind:
        yield from _of_object(value, kind, name)
    elif "items" in kind:
        if not isinstance(value, list) or len(value) > MAX_NAMES:
            yield f"{name}: write a list of at most {MAX_NAMES}"
        else:
            for i, each in enumerate(value):
                yield from _problems(each, kind["items"], f"{name}[{i}]")
    elif "pattern" in kind:
        if not (isinstance(value, str) and re.fullmatch(kind["pattern"], value)):
            yield f"{name}: '{shown(value)}' is not of the form asked for"
    elif not (value is None and "null" in kind["type"]):
        yield from _no_number(value, kind, name)


def _of_object(value: Any, kind: Schema, name: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{name}: write an object"
        return
    known = kind["properties"]
    for key in value:
        if key not in known:
            yield f"{name}: unknown field '{shown(key)}'; known: {', '.join(known)}"
    needed = [[key] for key in kind.get("required", ())]
    needed += [[key for each in kind.get("anyOf", ()) for key in each["required"]]]
    for keys in filter(None, needed):
        if not set(keys) & set(value):
            yield f"{name}: state {' or '.join(keys)}"
    inside = "" if name in ("the body", "limits", "choice") else f"{name}."
    for key in known:
        if key in value:
            yield from _problems(value[key], known[key], f"{inside}{key}")


def _none_of(value: Any, name: str, known: Sequence[str]) -> Iterator[str]:
    if isinstance(value, str) and value in known:
        return
    many = len(known) > MOST_LISTED
    near = nearest(f"{value}", known) if many else ""
    meant = f"; did you mean {near}?" if near else ""
    yield (
        f"{name}: '{shown(value)}' is none of {', '.join(known[:MOST_LISTED])}"
        f"{', …' if many else ''}{meant}"
    )


def _no_number(value: Any, kind: Schema, name: str) -> Iterator[str]:
    least, most, whole = kind["minimum"], kind["maximum"], "integer" in kind["type"]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # 3.0 is whole in JSON; a number may have too many digits for a float.
    if not number or not (value in range(least, most + 1) if whole else least <= value <= most):
        kind_words = "a whole number" if whole else "a number"
        yield f"{name}: write {kind_words} from {least:g} to {most:,.10g}"


def question_of(body: Any) -> Question:
    """A question of decoded JSON.

    Raises:
        UsageError: with every mistake found.
    """
    problems = tuple(_problems(body, schema(), "the body"))
    if problems:
        raise UsageError(*problems)
    job, quotas = body["job"], body.get("quotas", [])
    account = quotas if isinstance(quotas, str) else ""
    listed = () if account else tuple(map(_quota, quotas))
    choice = replace(
        _choice(body.get("choice", {})), quotas=listed, quotas_known=bool(listed or account)
    )
    return Question(
        job="" if isinstance(job, dict) else job,
        limits=_limits(body.get("limits", {})),
        choice=choice,
        machines=int(body.get("machines") or 0),
        own=_own(job) if isinstance(job, dict) else (),
        measured=tuple(dict.fromkeys(body.get("measured", ()))),
        account=account,
    )


def _own(job: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """One's own job as the flags of the command line: a known model, and how much of what."""
    words = ((name, job[name]) for name in SETTINGS if name in job)
    return (*words, *((name, f"{job[name]:.15g}") for name in AMOUNTS if name in job))


def _limits(given: Mapping[str, Any]) -> Limits:
    numbers = {name: float(given[name]) for name in NUMBERS if given.get(name) is not None}
    most, objective = int(given.get("max_machines", 16)), given.get("objective", "auto")
    return Limits(**numbers, max_machines=most, objective=objective)


def _choice(given: Mapping[str, Any]) -> Choice:
    lists = {name: tuple(dict.fromkeys(given.get(name, ()))) for name in ("providers", *NAMES)}
    stated: dict[str, Any] = {name: given[name] for name in WORDS if name in given} | lists
    return Choice(**stated)


def _quota(given: Mapping[str, Any]) -> QuotaLimit:
    provider = given["provider"]
    unit = CLOUDS[provider].quota_unit if provider in CLOUDS else "machine"
    return QuotaLimit(
        provider,
        given["family"],
        market=given.get("market", "any"),
        region=given.get("region", ""),
        unit=given.get("unit", unit),
        amount=float(given["amount"]),
    )


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
            problems.extend(_none_of(given[name], name, known))
    top = given.get("top", f"{most}")
    if re.fullmatch("[1-9][0-9]{0,2}|1000", top) is None:
        problems.append(f"top: write a whole number from 1 to {MAX_OFFERS}")
    if problems:
        raise UsageError(*problems)
    name, provider, region, market = (given.get(each, "") for each in FILTERS[:-1])
    return OfferFilter(name, provider, region, market, int(top))
