"""Views of a catalog: its contents, its age, and single offers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recommender.report import formatting as fmt
from recommender.report.formatting import age_days
from recommender.report.json_output import picked, plain
from recommender.report.page import Page, headings

if TYPE_CHECKING:
    from recommender.catalogs.catalog import Catalog, PriceDate
    from recommender.catalogs.schema import Offer, SpotClass

_WORDS = (
    ("retired", "retired"),
    ("reservation_only", "by reservation only"),
    ("unknown", "not known to be sold"),
)
_MARK = {"fallback": "*"}  # an achieved speed that rests on the vendor's peak
_MOVED = 0.05  # a drift below this is not worth a note
_TAKEN = ("<5 %", "5-10 %", "10-15 %", "15-20 %", ">20 %")  # AWS advisor: interrupted a month
_BARS = 5  # of a trend: a table of 80 columns has room for no more
_MATRIX = ("bf16", "fp16", "fp32")  # precisions, the one that most trainings use first


def status(catalog: "Catalog", name: str) -> Page:
    """One row per provider and market: number of offers, age, notes."""
    dates = catalog.price_dates()
    columns = headings("provider:", "market:", "offers", "regions", "prices of", "age", "note:")
    return Page(
        title=f"Catalog: {fmt.clean(name)}",
        columns=columns,
        rows=tuple(_status_row(catalog, date) for date in dates),
        flexible=len(columns) - 1,
        below=tuple(line for line in (_left_out(catalog), _checksum(catalog)) if line),
        facts={
            "version": catalog.version,
            "sha256": catalog.sha256,
            "prices": [
                picked(d, "provider", "market", "oldest", "newest", "offers") for d in dates
            ],
        },
    )


def _status_row(catalog: "Catalog", date: "PriceDate") -> tuple[str, ...]:
    rows = _rows_of(catalog, date.provider, date.market)
    regions = {catalog.offers.region[i] for i in rows}
    age = age_days(date.newest)
    return (
        fmt.clean(date.provider),
        fmt.market(date.market),
        f"{date.offers:,}",
        f"{len(regions):,}",
        date.newest,
        "unknown" if age is None else f"{age} d",
        ", ".join(_notes(catalog, date, rows)),
    )


def _rows_of(catalog: "Catalog", provider: str, market: str) -> list[int]:
    pairs = zip(catalog.offers.provider, catalog.offers.market, strict=True)
    return [i for i, pair in enumerate(pairs) if pair == (provider, market)]


def _notes(catalog: "Catalog", date: "PriceDate", rows: Sequence[int]) -> list[str]:
    offers = catalog.offers
    derived = sum(offers.kind[i] == "derived" for i in rows)
    floor = sum(offers.flag[i] == "floor" for i in rows)
    notes = [f"{derived:,} derived"] if derived else []
    notes += [f"{floor:,} at the price floor"] if floor else []
    if date.oldest != date.newest:
        notes.append(f"oldest {date.oldest}")
    moved = _drift(catalog, date)
    return [*notes, moved] if moved else notes


def _drift(catalog: "Catalog", date: "PriceDate") -> str:
    """How far prices of this provider and market move in the time since."""
    age = age_days(date.newest)
    known = [
        d for d in catalog.price_drift if (d.provider, d.market) == (date.provider, date.market)
    ]
    if not age or not known:
        return ""
    nearest = min(known, key=lambda d: abs(math.log(max(d.age_days, 0.1) / age)))
    if nearest.sigma < _MOVED:
        return ""
    return f"moves {fmt.percent(nearest.sigma)} in {fmt.number(nearest.age_days)} d"


def _left_out(catalog: "Catalog") -> str:
    counts = Counter(catalog.offers.obtainable)
    parts = [f"{counts[key]:,} {word}" for key, word in _WORDS if counts[key]]
    return f"left out of default answers: {', '.join(parts)}" if parts else ""


def _checksum(catalog: "Catalog") -> str:
    return f"sha256 {catalog.sha256[:16]}…, {len(catalog.sources)} sources: recommend sources"


Trend = Sequence[tuple[str, float]]  # day and price, oldest first
OfferKey = tuple[str, str, str, str, str]
NO_TREND: Mapping[OfferKey, Trend] = {}


def offers(
    catalog: "Catalog",
    found: Sequence["Offer"],
    most: int,
    trends: Mapping[OfferKey, Trend] = NO_TREND,
) -> Page:
    """Single offers, as the planner sees them; `trends` are shown below the notes."""
    shown = found[:most]
    columns = headings("offer:", "USD/GPU h", "USD/h as of", "FLOP/USD", "note:")
    hidden = len(found) - most
    below = [f"{hidden:,} more: --top {len(found)}"] if hidden > 0 else []
    return Page(
        title="",
        columns=columns,
        rows=tuple(
            _offer_row(catalog, offer, trend_words(trends.get(offer_key(offer), ())))
            for offer in shown
        ),
        flexible=len(columns) - 1,
        below=(*below, *about(catalog, shown)),
        facts=[_offer_facts(catalog, offer) for offer in shown],
    )


def offer_key(offer: "Offer") -> OfferKey:
    """The identity of an offer across versions."""
    return offer.provider, offer.instance_type, offer.region, offer.zone, offer.market


def trend_words(prices: Trend) -> str:
    """A sparkline and the change from the first price to the last: "▁▃▇ +12 %"."""
    values = [usd for _, usd in prices]
    if len(values) < 2:
        return ""
    change = values[-1] / values[0] - 1.0
    last = len(values) - 1
    values = [values[at] for at in sorted({round(i * last / (_BARS - 1)) for i in range(_BARS)})]
    return f"{fmt.sparkline(values)} {'+' if change >= 0.0 else '−'}{fmt.percent(abs(change))}"


def usd_per_gpu(catalog: "Catalog", offer: "Offer") -> float | None:
    """Price of one GPU for an hour; None of machines without any."""
    gpus = catalog.type_of(offer).gpus
    return offer.usd_per_hour / gpus if gpus else None


def flop_per_usd(catalog: "Catalog", offer: "Offer") -> float | None:
    """FLOP of matrix multiplication per dollar (FLOPP, DeepVM); None if unknown.

    In bf16, or the closest precision of that GPU.
    """
    machine = catalog.type_of(offer)
    speeds = {a.precision: a.tflops for a in catalog.achieved.values() if a.gpu == machine.gpu}
    tflops = next((speeds[name] for name in _MATRIX if name in speeds), None)
    if tflops is None or not machine.gpus:
        return None
    return tflops * 1e12 * machine.gpus * 3600.0 / offer.usd_per_hour


def about(catalog: "Catalog", found: Sequence["Offer"]) -> list[str]:
    """What holds of all offers of a kind that are shown: spot capacity, speeds."""
    return [*spot_capacity(catalog, found), *speeds(catalog, found)]


def spot_capacity(catalog: "Catalog", found: Sequence["Offer"]) -> list[str]:
    """How often one machine can be had on spot, and for how long, by kind of machine."""
    machines = (catalog.type_of(offer) for offer in found if offer.market == "spot")
    kinds = dict.fromkeys((machine.gpu, machine.gpus) for machine in machines)
    laws = ((gpu, _spot_class(catalog, gpu, gpus)) for gpu, gpus in kinds)
    return [_capacity(gpu, law) for gpu, law in dict.fromkeys(laws) if law is not None]


def _spot_class(catalog: "Catalog", gpu: str, gpus: int) -> "SpotClass | None":
    return next(
        (law for law in catalog.spot_classes
         if gpu in law.gpus and law.gpus_per_machine_min <= gpus <= law.gpus_per_machine_max),
        None,
    )  # fmt: skip


def _capacity(gpu: str, law: "SpotClass") -> str:
    least, most = law.gpus_per_machine_min, law.gpus_per_machine_max
    count = f"{least}" if least == most else f"{least} to {most}"
    traces = "traces of other GPUs" if law.basis == "transferred" else "traces"
    return (
        f"spot machines of {count} {fmt.clean(gpu)}: available {fmt.percent(law.availability)} of "
        f"the time, in runs of {fmt.duration(law.run_mean_s)} on average ({traces} until "
        f"{law.as_of})"
    )


def speeds(catalog: "Catalog", found: Sequence["Offer"]) -> list[str]:
    """Matrix-multiplication speed of the listed GPUs, and whether it was measured."""
    gpus = dict.fromkeys(catalog.type_of(offer).gpu for offer in found)
    lines = []
    for gpu in gpus:
        parts = [
            f"{a.precision} {fmt.number(a.tflops)} "
            f"({fmt.number(a.low_tflops)}-{fmt.number(a.high_tflops)}){_MARK.get(a.kind, '')}"
            for a in catalog.achieved.values()
            if a.gpu == gpu
        ]
        lines += [f"TFLOP/s of {fmt.clean(gpu)}: {', '.join(parts)}"] if parts else []
    if any(line.count("*") for line in lines):
        lines.append("* not measured: the vendor's peak times the share that similar GPUs reach")
    return lines


def matching(
    catalog: "Catalog", word: str, provider: str, region: str, market: str
) -> list["Offer"]:
    """The offers whose instance type or GPU contains a word, sorted by price per GPU."""
    columns = catalog.offers
    wanted = word.lower()
    found = [
        i
        for i in range(len(columns))
        if (not provider or columns.provider[i] == provider)
        and (not region or columns.region[i] == region)
        and (not market or columns.market[i] == market)
        and _named(catalog, i, wanted)
    ]
    gpus = [catalog.instance_types[columns.provider[i], columns.instance_type[i]].gpus
            for i in found]  # fmt: skip
    by_gpu = {
        i: (not count, round(columns.usd_per_hour[i] / max(count, 1), 6))
        for i, count in zip(found, gpus, strict=True)
    }
    found.sort(key=lambda i: (by_gpu[i], columns.usd_per_hour[i], columns.instance_type[i], i))
    return [columns[i] for i in found]


def _named(catalog: "Catalog", index: int, wanted: str) -> bool:
    provider, name = catalog.offers.provider[index], catalog.offers.instance_type[index]
    return wanted in name.lower() or wanted in catalog.instance_types[provider, name].gpu.lower()


def _offer_row(catalog: "Catalog", offer: "Offer", trend: str) -> tuple[str, ...]:
    machine = catalog.type_of(offer)
    by_gpu, flop = usd_per_gpu(catalog, offer), flop_per_usd(catalog, offer)
    place = f"{offer.provider} {fmt.clean(offer.zone or offer.region)}"
    price = "" if by_gpu is None else f"{by_gpu:,.4g}"
    return (
        f"{fmt.clean(offer.instance_type)} {fmt.market(offer.market)}\n"
        f"{machine.gpus} {fmt.clean(machine.gpu) or 'GPUs'} · {place}",
        price,
        f"{offer.usd_per_hour:,.4g}\n{offer.as_of[:10]}",
        "" if flop is None else fmt.scientific(flop),
        "\n".join(filter(None, (_note(offer), trend))),
    )


def _note(offer: "Offer") -> str:
    """How the price was found, whether it can be had, and how often it is taken back."""
    remark = {"quote": "", "composed": ""}.get(offer.kind, offer.kind)
    flag = "price floor" if offer.flag == "floor" else offer.flag
    words = [remark, flag, offer.obtainable if offer.obtainable != "open" else ""]
    condition = " ".join(fmt.clean(word).replace("_", " ") for word in words if word)
    if offer.interruption_range is None or offer.market != "spot":
        return condition
    taken = f"{_TAKEN[offer.interruption_range]} reclaimed a month"
    return f"{condition}; {taken}" if condition else taken


def _offer_facts(catalog: "Catalog", offer: "Offer") -> dict[str, object]:
    machine = catalog.type_of(offer)
    return {
        **picked(offer, "provider", "instance_type"),
        **picked(machine, "gpu", "gpus"),
        **picked(offer, "region", "zone", "market", "usd_per_hour"),
        "usd_per_gpu_hour": plain(usd_per_gpu(catalog, offer)),
        "flop_per_usd": plain(flop_per_usd(catalog, offer)),
        **picked(offer, "interruption_range", "as_of", "kind", "flag", "obtainable"),
        "matrix_tflops": [
            {
                **picked(a, "precision", "tflops"),
                "low": a.low_tflops,
                "high": a.high_tflops,
                **picked(a, "kind", "as_of"),
            }
            for a in catalog.achieved.values()
            if a.gpu == machine.gpu
        ],
        "source": catalog.source_by_key[offer.source].name,
    }


def sources(catalog: "Catalog") -> Page:
    """The sources of the figures, and their licences."""
    columns = headings("#", "source and licence:", "used as:")
    rows = tuple(
        (
            str(s.source),
            f"{fmt.clean(s.attribution or s.name)}\n({fmt.clean(s.licence)})",
            s.taken,
        )
        for s in catalog.sources
    )
    names = ("source", "name", "licence", "taken", "attribution")
    facts = [picked(s, *names) for s in catalog.sources]
    return Page("Where the figures come from", columns, rows, 1, facts=facts)
