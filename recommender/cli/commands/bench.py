"""`recommend bench`: measures machines, and saves what was measured."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector, known_region, one_of
from recommender.cli.groups import add_command, group_app
from recommender.cli.open_catalog import load_catalog
from recommender.cli.options import PageFlags, Word
from recommender.cli.output import as_json, put_json, show_page
from recommender.errors import UsageError
from recommender.inputs import units

if TYPE_CHECKING:
    from recommender.benchmarks.suite import SuiteOptions
    from recommender.catalogs.catalog import Catalog

group = group_app("bench", "Measure machines, and plan with the results.")
_PRECISIONS = ("bf16", "fp16", "fp32", "tf32", "fp8")  # the first that a GPU has is ranked by
_CATALOG = Annotated[
    Word,
    typer.Option("--catalog", help="Catalog folder (the shipped one).", metavar="PATH"),
]


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What is measured, where, and on whose machine."""

    suite: Annotated[
        Word, typer.Option(help="quick: about a minute; full: long.", metavar="quick|full")
    ] = None
    device: Annotated[
        Word, typer.Option(help="Device to measure (a GPU if there is one).", metavar="cuda|cpu")
    ] = None
    output: Annotated[
        Word,
        typer.Option("-o", "--output", help="Write the JSON record to FILE.", metavar="FILE"),
    ] = None
    folder: Annotated[
        Word, typer.Option(help="Folder on the disk to measure (the current one).", metavar="DIR")
    ] = None
    mount: Annotated[Word, typer.Option(help="Another mounted path to measure.", metavar="DIR")] = (
        None
    )
    s3: Annotated[
        Word, typer.Option(help="Object store to measure.", metavar="s3://BUCKET/PREFIX")
    ] = None
    s3_endpoint: Annotated[
        Word, typer.Option(help="Address of an S3-compatible store.", metavar="URL")
    ] = None
    profile: Annotated[
        Word,
        typer.Option(
            help="Stalls of a training: cnn, transformer, mlp, or your own module:function, "
            "which is run.",
            metavar="NAME",
        ),
    ] = None
    no_metadata: Annotated[
        bool,
        typer.Option("--no-metadata", help="Do not query the provider's metadata service."),
    ] = False
    provider: Annotated[
        Word, typer.Option(help="Provider of this machine.", metavar="|".join(units.PROVIDERS))
    ] = None
    instance: Annotated[Word, typer.Option(help="Its instance type.", metavar="NAME")] = None
    region: Annotated[Word, typer.Option(help="Its region.", metavar="NAME")] = None
    zone: Annotated[Word, typer.Option(help="Its zone.", metavar="NAME")] = None
    market: Annotated[
        Word, typer.Option(help="Market it is rented in.", metavar="spot|on-demand")
    ] = None
    usd_per_hour: Annotated[
        Word, typer.Option(help="Its price (the catalog's).", metavar="USD")
    ] = None


def run(flags: RunFlags) -> None:
    """Measure this machine: matrix products, memory, links, disk, input.

    \b
    recommend bench run --suite quick -o result.json
    """
    from recommender.benchmarks.command import measure
    from recommender.performance.measurements.store import usable

    options = _options(flags)
    usable(lambda: measure(_priced(options), flags.output))


def pack(
    output: Annotated[
        str, typer.Option("-o", "--output", help="File to write.", metavar="FILE")
    ] = "bench.pyz",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write the benchmarks as one file for a bare machine: python bench.pyz.

    \b
    recommend bench pack -o bench.pyz
    """
    from recommender.benchmarks.bundle import write_bundle
    from recommender.performance.measurements.store import usable

    usable(lambda: write_bundle(Path(output), force))
    typer.echo(f"written to {output}; copy it to the machine and run python3 {Path(output).name}")


def import_(
    flags: PageFlags,
    files: Annotated[list[str], typer.Argument(help="Records to import.", metavar="FILE...")],
    gpu: Annotated[
        Word, typer.Option(help="Name of their GPU in the catalog.", metavar="NAME")
    ] = None,
) -> None:
    """Save records of machines; plans then use their speeds.

    \b
    recommend bench import result.json
    """
    from recommender.catalogs.load import load_snapshot
    from recommender.performance.measurements.store import import_files
    from recommender.report.benchmarks import import_page

    as_json(flags)
    done = import_files([Path(name) for name in files], load_snapshot(), gpu)
    page = import_page(done.added, done.pooled, done.links, done.warnings, str(done.folder))
    show_page(page, flags)


def show(
    flags: PageFlags,
    gpu: Annotated[
        str | None, typer.Argument(metavar="[GPU]", help="GPU to show.", show_default=False)
    ] = None,
    market: Annotated[
        Word, typer.Option(help="Only this market.", metavar="spot|on-demand")
    ] = None,
    region: Annotated[Word, typer.Option(help="Only this region.", metavar="NAME")] = None,
    precision: Annotated[
        Word, typer.Option(help="Precision of the ranking (bf16; else fp16, fp32).", metavar="NAME")
    ] = None,
    top: Annotated[Word, typer.Option(help="Number of offers shown (20).", metavar="N")] = None,
    catalog: _CATALOG = None,
) -> None:
    """Show what was measured, and the matrix multiplication per dollar of each offer.

    \b
    recommend bench show H100 --market spot
    """
    from recommender.performance.measurements.flopp import FloppFilter, flopp_of_offers
    from recommender.performance.measurements.folder import folder
    from recommender.performance.measurements.pool import pooled, rates
    from recommender.performance.measurements.store import records
    from recommender.report import benchmarks

    json, errors = as_json(flags), ErrorCollector()
    most = errors.parse(top, "--top", units.whole_of("20"), 20)
    kind = errors.market(market)
    at = errors.parse(precision, "--precision", one_of(_PRECISIONS), "")
    errors.raise_all()
    loaded = load_catalog(catalog)
    name = "" if gpu is None else _known_gpu(gpu, loaded)
    known = [each for each in _PRECISIONS if not name or (name, each) in loaded.achieved]
    at = at or next(iter(known), _PRECISIONS[0])
    found = flopp_of_offers(loaded, FloppFilter(name, kind, known_region(region, loaded), at))
    own = [k for k in records(folder()) if k.gpu.lower() == name.lower() or not name]
    if not (own or found):
        raise UsageError(_nothing_to_show(name, at, known))
    speeds, other = pooled(own, dict(loaded.gpus)), rates(own)
    if json:
        put_json(benchmarks.show_facts(speeds, other, found, most))
        return
    if speeds:
        show_page(benchmarks.speeds_page(speeds, "Your own speeds"), flags)
    if other:
        show_page(benchmarks.rates_page(other), flags)
    show_page(benchmarks.offers_page(found, most, at), flags)


def _nothing_to_show(gpu: str, precision: str, known: list[str]) -> str:
    """Why there is neither a record nor an offer of a GPU in a precision."""
    if precision in known:
        return "no offer matches; recommend catalog show lists all"
    return f"the speed of {gpu} in {precision} is not known; known: {', '.join(known) or 'none'}"


def compare(
    flags: PageFlags,
    first: Annotated[str, typer.Argument(help="First record.", metavar="A")],
    second: Annotated[str, typer.Argument(help="Second record.", metavar="B")],
) -> None:
    """Compare two records; differences that are only noise are marked.

    \b
    recommend bench compare before.json after.json
    """
    from recommender.benchmarks.record import read_record
    from recommender.performance.measurements.pool import compared
    from recommender.performance.measurements.store import usable
    from recommender.report.benchmarks import compare_page

    a, b = (usable(partial(read_record, Path(name))) for name in (first, second))
    found = compared(a, b)
    if not found:
        raise UsageError(f"{first} and {second} hold no case in common; run the same suite")
    names = [f"{name}, {r.machine.line}, {r.taken_at}" for name, r in ((first, a), (second, b))]
    show_page(compare_page(found, *names), flags)


def stalls(
    flags: PageFlags,
    files: Annotated[list[str], typer.Argument(help="Records with a profile.", metavar="FILE...")],
    gpu: Annotated[
        Word, typer.Option(help="Name of their GPU in the catalog.", metavar="NAME")
    ] = None,
    timings: Annotated[
        Word,
        typer.Option(help="Write the runs to FILE, for recommend calibrate.", metavar="FILE"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Show what a training waits for, from records of one GPU, one machine and several.

    \b
    recommend bench stalls one.json two-machines.json --timings timings.csv
    recommend calibrate my.yaml timings.csv
    """
    from recommender.catalogs.load import load_snapshot
    from recommender.performance.measurements.stall_vector import vector_of, write_timings
    from recommender.performance.measurements.store import checked
    from recommender.report.benchmarks import stalls_page

    as_json(flags)
    catalog = load_snapshot()
    kept = [checked(Path(name), catalog, gpu)[1] for name in files]
    named = [(Path(name).name, each.record) for name, each in zip(files, kept, strict=True)]
    found = vector_of(named, [each.gpu for each in kept])
    if timings is not None:
        types = [name for _, name in catalog.instance_types]
        write_timings(found, Path(timings), types, force)
    show_page(stalls_page(found, timings or ""), flags)


def _options(flags: RunFlags) -> "SuiteOptions":
    from recommender.benchmarks.metadata import Place
    from recommender.benchmarks.suite import SuiteOptions

    errors = ErrorCollector()
    suite = errors.choose(flags.suite, "--suite", ("quick", "full"), "quick")
    device = errors.choose(flags.device, "--device", ("cuda", "cpu"), "") or None
    provider = errors.choose(flags.provider, "--provider", units.PROVIDERS, "")
    market = errors.market(flags.market)
    price = errors.parse(flags.usd_per_hour, "--usd-per-hour", units.parse_money, None)
    errors.raise_all()
    place = Place(provider, flags.instance or "", flags.region or "", flags.zone or "", market)
    return SuiteOptions(
        suite, device, flags.folder or ".", flags.mount or "", flags.s3 or "",
        flags.s3_endpoint or "", flags.profile or "", not flags.no_metadata, place, price,
    )  # fmt: skip


def _priced(options: "SuiteOptions") -> "SuiteOptions":
    """The options with the place found and the catalog's price of it."""
    from recommender.benchmarks.suite import find_place
    from recommender.performance.measurements.flopp import price_of

    place = find_place(options)
    price = options.usd_per_hour
    if price is None and place.instance_type:
        where = (place.provider, place.instance_type, place.region, place.market)
        price = price_of(load_catalog(None), *where)
    return replace(options, place=place, ask_metadata=False, usd_per_hour=price)


def _known_gpu(gpu: str, catalog: "Catalog") -> str:
    """The catalog's name of a GPU."""
    from recommender.text import unknown

    found = [name for name in catalog.gpus if name.lower() == gpu.lower()]
    if not found:
        raise UsageError(unknown("GPU", gpu, catalog.gpus))
    return found[0]


add_command(group, "run", run)
add_command(group, "pack", pack)
add_command(group, "import", import_)
add_command(group, "show", show)
add_command(group, "compare", compare)
add_command(group, "stalls", stalls)
