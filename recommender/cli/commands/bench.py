"""`recommend bench`: measures machines, and saves what was measured."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recommender.benchmarks.bundle import write_bundle
from recommender.benchmarks.metadata import Place
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import load_snapshot
from recommender.cli.error_collector import ErrorCollector, known_region, one_of
from recommender.cli.flags import Word, argument, flag, switch
from recommender.cli.groups import add_command, group_app
from recommender.cli.open_catalog import load_catalog
from recommender.cli.options import FORCE, TOP, PageFlags
from recommender.cli.output import form_of, show_page
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.performance.measurements import folder
from recommender.text import unknown

if TYPE_CHECKING:
    from recommender.benchmarks.suite import SuiteOptions
    from recommender.catalogs.catalog import Catalog

group = group_app("bench", "Measure machines, and plan with the results.")
_PRECISIONS = ("bf16", "fp16", "fp32", "tf32", "fp8")  # the first that a GPU has is ranked by


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What is measured, where, and on whose machine."""

    suite: Word = flag("quick|full", "quick: about a minute; full: long.")
    device: Word = flag("cuda|cpu", "Device to measure (a GPU if there is one).")
    output: Word = flag("FILE", "Write the JSON record to FILE.", "-o", "--output")
    folder: Word = flag("DIR", "Folder on the disk to measure (the current one).")
    mount: Word = flag("DIR", "Another mounted path to measure.")
    s3: Word = flag("s3://BUCKET/PREFIX", "Object store to measure.")
    s3_endpoint: Word = flag("URL", "Address of an S3-compatible store.")
    profile: Word = flag(
        "NAME",
        "Stalls of a training: cnn, transformer, mlp, or your own module:function, which is run.",
    )
    no_metadata: bool = switch("Do not query the provider's metadata service.")
    provider: Word = flag(units.PROVIDERS, "Provider of this machine.")
    instance: Word = flag("NAME", "Its instance type.")
    region: Word = flag("NAME", "Its region.")
    zone: Word = flag("NAME", "Its zone.")
    market: Word = flag("spot|on-demand", "Market it is rented in.")
    usd_per_hour: Word = flag("USD", "Its price (the catalog's).")


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
    output: str = flag("FILE", "File to write.", "-o", "--output", default="bench.pyz"),
    force: bool = FORCE,
) -> None:
    """Write the benchmarks as one file for a bare machine: python bench.pyz.

    \b
    recommend bench pack -o bench.pyz
    """
    from recommender.performance.measurements.store import usable

    usable(lambda: write_bundle(Path(output), force))
    typer.echo(f"written to {output}; copy it to the machine and run python3 {Path(output).name}")


def import_(
    flags: PageFlags,
    files: list[str] = argument("FILE...", "Records to import."),
    gpu: Word = flag("NAME", "Name of their GPU in the catalog."),
) -> None:
    """Save records of machines; plans then use their speeds.

    \b
    recommend bench import result.json
    """
    from recommender.performance.measurements.store import import_files
    from recommender.report.benchmarks import import_page

    form = form_of(flags)
    done = import_files([Path(name) for name in files], load_snapshot(), gpu)
    page = import_page(done.added, done.pooled, done.links, done.warnings, str(done.folder))
    show_page(page, form)


def show(
    flags: PageFlags,
    gpu: Word = argument("[GPU]", "GPU to show.", None),
    market: Word = flag("spot|on-demand", "Only this market."),
    region: Word = flag("NAME", "Only this region."),
    precision: Word = flag("NAME", "Precision of the ranking (bf16; else fp16, fp32)."),
    top: Word = TOP,
    catalog: Word = flag("PATH", "Catalog folder (the shipped one)."),
) -> None:
    """Show what was measured, and the matrix multiplication per dollar of each offer.

    \b
    recommend bench show H100 --market spot
    """
    from recommender.performance.measurements.flopp import FloppFilter, flopp_of_offers
    from recommender.performance.measurements.pool import pooled, rates
    from recommender.performance.measurements.store import records
    from recommender.report import benchmarks

    form, errors = form_of(flags), ErrorCollector()
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
    show_page(benchmarks.measured_page(speeds, other, found, most, at), form)


def _nothing_to_show(gpu: str, precision: str, known: list[str]) -> str:
    """Why there is neither a record nor an offer of a GPU in a precision."""
    if precision in known:
        return "no offer matches; recommend catalog show lists all"
    return f"the speed of {gpu} in {precision} is not known; known: {', '.join(known) or 'none'}"


def compare(
    flags: PageFlags,
    first: str = argument("A", "First record."),
    second: str = argument("B", "Second record."),
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
    files: list[str] = argument("FILE...", "Records with a profile."),
    gpu: Word = flag("NAME", "Name of their GPU in the catalog."),
    timings: Word = flag("FILE", "Write the runs to FILE, for recommend calibrate."),
    force: bool = FORCE,
) -> None:
    """Show what a training waits for, from records of one GPU, one machine and several.

    \b
    recommend bench stalls one.json two-machines.json --timings timings.csv
    recommend calibrate my.yaml timings.csv
    """
    from recommender.performance.measurements.stall_vector import vector_of, write_timings
    from recommender.performance.measurements.store import checked
    from recommender.report.benchmarks import stalls_page

    form = form_of(flags)
    catalog = load_snapshot()
    kept = [checked(Path(name), catalog, gpu)[1] for name in files]
    named = [(Path(name).name, each.record) for name, each in zip(files, kept, strict=True)]
    found = vector_of(named, [each.gpu for each in kept])
    if timings is not None:
        types = [name for _, name in catalog.instance_types]
        write_timings(found, Path(timings), types, force)
    show_page(stalls_page(found, timings or ""), form)


def _options(flags: RunFlags) -> "SuiteOptions":
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
