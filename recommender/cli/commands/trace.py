"""`recommend trace`: recorded spot markets, the laws behind them, and laws saved for offers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recommender.cli.error_collector import ErrorCollector
from recommender.cli.groups import add_command, group_app
from recommender.cli.options import PageFlags, SheetFlags, TraceFlags, Word, Words
from recommender.cli.output import put_json, sheet_format, show_page
from recommender.cli.screen import progress, write_text
from recommender.text import shown

if TYPE_CHECKING:
    from recommender.traces.fit_result import TraceFit
    from recommender.traces.trace import Trace

group = group_app("trace", "Recorded spot markets, and spot laws fitted to them.")
_FILES = Annotated[
    list[str], typer.Argument(help="Trace files; may be gzipped.", metavar="FILE...")
]


def _offers(incomplete: str) -> list[str]:
    from recommender.traces.law_store import stored

    return [law.offer for law in stored() if law.offer.startswith(incomplete)]


def chosen_series(files: list[str], flags: TraceFlags) -> "tuple[Trace, ...]":
    """The requested series of some files."""
    from recommender.traces.read import chosen
    from recommender.traces.sample import trace_path

    return chosen([trace_path(name) for name in files], flags.series or ())


def fit_trace(
    files: _FILES,
    trace: TraceFlags,
    flags: SheetFlags,
    store: Annotated[
        Words,
        typer.Option(
            help="Save the law for this offer, PROVIDER:PLACE:MACHINE; repeatable.",
            metavar="OFFER",
        ),
    ] = None,
    catalog: Annotated[
        Word, typer.Option(help="Catalog that contains the offers of --store.", metavar="PATH")
    ] = None,
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

    form = sheet_format(flags)
    offers = _parsed(store or [])
    with progress("fitting"):
        found = fit(chosen_series(files, trace))
    saved = _saved(offers, found, catalog) if offers else []
    if form == "json":
        put_json(traces_view.fit_page(found, saved).facts)
    elif form == "csv":
        write_text(traces_view.fit_csv(found))
    else:
        show_page(traces_view.fit_page(found, saved), PageFlags(color=flags.color))


def _parsed(words: list[str]) -> list[tuple[str, str, str]]:
    from recommender.traces.law_store import parse_offer

    errors = ErrorCollector()
    found = errors.parse_all(words, "--store", parse_offer)
    errors.raise_all()
    return list(found)


def _saved(offers: list[tuple[str, str, str]], found: "TraceFit", catalog: str | None) -> list[str]:
    """Save the law of a fit; the offers it is saved for."""
    from recommender.cli.open_catalog import load_catalog
    from recommender.inputs.units.times import now
    from recommender.traces.law_store import check_offer, laws_for, save_laws

    loaded, errors = load_catalog(catalog), ErrorCollector()
    for offer in offers:
        errors.attempt(partial(check_offer, offer, found, loaded, "--store"), None)
    errors.raise_all()
    laws = laws_for(offers, found, now().date())
    save_laws(laws)
    return [law.offer for law in laws]


def show(files: _FILES, trace: TraceFlags, flags: PageFlags) -> None:
    """Summarise trace files: places, times, share of time up, and a line over time.

    \b
    recommend trace show spot-prices.json
    """
    from recommender.report.traces import series_page
    from recommender.traces.fit import watch

    with progress("reading"):
        page = series_page(watch(chosen_series(files, trace)))
    show_page(page, flags)


def convert(
    files: _FILES,
    trace: TraceFlags,
    out: Annotated[
        Word,
        typer.Option(
            "-o", "--out", help="File to write; compressed if it ends in .gz.", metavar="OUT"
        ),
    ] = None,
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
    from recommender.report.traces import laws_page
    from recommender.traces.law_store import store_path, stored

    show_page(laws_page(stored(), str(store_path())), flags)


def forget(
    offers: Annotated[
        list[str],
        typer.Argument(
            help="Offers as printed by recommend trace list.",
            metavar="OFFER...",
            autocompletion=_offers,
        ),
    ],
) -> None:
    """Delete the spot laws saved for some offers.

    \b
    recommend trace forget gcp:us-central1:a3-highgpu-8g
    """
    from recommender.traces.law_store import forget as forget_laws

    forget_laws(offers)
    write_text("".join(f"forgot {offer}\n" for offer in offers))


add_command(group, "fit", fit_trace)
add_command(group, "show", show)
add_command(group, "convert", convert)
add_command(group, "list", list_laws)
add_command(group, "forget", forget)
