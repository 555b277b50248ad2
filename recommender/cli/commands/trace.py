"""`recommend trace`: recorded spot markets, the laws behind them, and laws saved for offers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recommender.cli.error_collector import ErrorCollector
from recommender.cli.flags import Word, Words, argument, flag
from recommender.cli.groups import add_command, group_app
from recommender.cli.open_catalog import load_catalog
from recommender.cli.options import PageFlags, TraceFlags
from recommender.cli.output import form_of, show_page
from recommender.cli.screen import progress, write_text
from recommender.inputs.units.times import now
from recommender.report.traces import laws_page, series_page
from recommender.text import shown
from recommender.traces.fit_result import TraceFit
from recommender.traces.law_store import (
    check_offer,
    laws_for,
    parse_offer,
    save_laws,
    store_path,
    stored,
)
from recommender.traces.law_store import forget as forget_laws

if TYPE_CHECKING:
    from recommender.traces.fit_result import TraceFit
    from recommender.traces.trace import Trace

group = group_app("trace", "Recorded spot markets, and spot laws fitted to them.")
_FILES = argument("FILE...", "Trace files; may be gzipped.")


def _offers(incomplete: str) -> list[str]:
    return [law.offer for law in stored() if law.offer.startswith(incomplete)]


def chosen_series(files: list[str], flags: TraceFlags) -> "tuple[Trace, ...]":
    """The requested series of some files."""
    from recommender.traces.read import chosen
    from recommender.traces.sample import trace_path

    return chosen([trace_path(name) for name in files], flags.series or ())


def fit_trace(
    trace: TraceFlags,
    flags: PageFlags,
    files: list[str] = _FILES,
    store: Words = flag(
        "OFFER", "Save the law for this offer, PROVIDER:PLACE:MACHINE; repeatable."
    ),
    catalog: Word = flag("PATH", "Catalog that contains the offers of --store."),
) -> None:
    """Estimate hazards, outages, gangs, zones, hours and prices, with confidence limits.

    With --store, plans use the fitted law for an offer instead of the law of its GPU's class.
    PLACE is a zone, a region or *; MACHINE is an instance type or a GPU such as H100:8.

    \b
    recommend trace fit zone-a.csv zone-b.csv
    recommend trace fit mine.csv --store gcp:us-central1:a3-highgpu-8g
    """
    from recommender.report import traces as traces_view
    from recommender.traces.fit import fit

    form = form_of(flags)
    offers = _parsed(store or [])
    with progress("fitting"):
        found = fit(chosen_series(files, trace))
    saved = _saved(offers, found, catalog) if offers else []
    show_page(traces_view.fit_page(found, saved), form)


def _parsed(words: list[str]) -> list[tuple[str, str, str]]:
    errors = ErrorCollector()
    found = errors.parse_all(words, "--store", parse_offer)
    errors.raise_all()
    return list(found)


def _saved(offers: list[tuple[str, str, str]], found: "TraceFit", catalog: str | None) -> list[str]:
    """Save the law of a fit; the offers it is saved for."""

    loaded, errors = load_catalog(catalog), ErrorCollector()
    for offer in offers:
        errors.attempt(partial(check_offer, offer, found, loaded, "--store"), None)
    errors.raise_all()
    laws = laws_for(offers, found, now().date())
    save_laws(laws)
    return [law.offer for law in laws]


def show(trace: TraceFlags, flags: PageFlags, files: list[str] = _FILES) -> None:
    """Summarise trace files: places, times, share of time up, and a line over time.

    \b
    recommend trace show spot-prices.json
    """
    from recommender.traces.fit import watch

    with progress("reading"):
        page = series_page(watch(chosen_series(files, trace)))
    show_page(page, flags)


def convert(
    trace: TraceFlags,
    files: list[str] = _FILES,
    out: Word = flag("OUT", "File to write; compressed if it ends in .gz.", "-o", "--out"),
) -> None:
    """Convert trace files to the tool's own format, on standard output or in a file.

    \b
    recommend trace convert spot-prices.json operations.json -o zones.csv.gz
    """
    from recommender.traces.own_format import write, write_file

    with progress("reading"):
        traces = chosen_series(files, trace)
    if out is None:
        write_text(write(traces))
        return
    write_file(traces, Path(out))
    write_text(f"{len(traces)} series in {shown(out)}\n")


def list_laws(flags: PageFlags) -> None:
    """List the spot laws saved for offers.

    \b
    recommend trace list
    """

    show_page(laws_page(stored(), str(store_path())), flags)


def forget(
    offers: list[str] = argument(
        "OFFER...", "Offers as printed by recommend trace list.", autocompletion=_offers
    ),
) -> None:
    """Delete the spot laws saved for some offers.

    \b
    recommend trace forget gcp:us-central1:a3-highgpu-8g
    """

    forget_laws(offers)
    write_text("".join(f"forgot {offer}\n" for offer in offers))


add_command(group, "fit", fit_trace)
add_command(group, "show", show)
add_command(group, "convert", convert)
add_command(group, "list", list_laws)
add_command(group, "forget", forget)
