"""`recommend catalog refresh` and `quotas`: the commands that ask the providers."""

import sys

import typer

from recommender.catalogs.archive import import_published
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.load import SNAPSHOT, load_snapshot
from recommender.catalogs.pin import Pin, pinned
from recommender.catalogs.providers.clients import Maker, makers, update_makers
from recommender.catalogs.providers.contract import QuotaValue, Wanted
from recommender.catalogs.providers.quotas import quota_text
from recommender.catalogs.providers.redact import redacted
from recommender.catalogs.refresh.collect import collect
from recommender.catalogs.refresh.report import facts
from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS
from recommender.catalogs.remote import default_cache, load_remote
from recommender.cli.error_collector import ErrorCollector, name_of, one_of
from recommender.cli.exit_codes import NOTHING, PARTIAL, report_errors
from recommender.cli.flags import Word, Words, flag, switch
from recommender.cli.open_catalog import open_catalog, store_at, warn
from recommender.cli.options import PROVIDERS, STORE, PageFlags
from recommender.cli.output import form_of, show_page
from recommender.cli.screen import write_text
from recommender.inputs.units.times import now
from recommender.report import formatting as fmt
from recommender.report.store import refresh_page

_DRY_RUN = switch("Fetch and check, but publish nothing.")
_ACCEPT = switch("Publish changes that a check held back; review them first.")


def update(
    flags: PageFlags,
    provider: Words = PROVIDERS,
    dry_run: bool = _DRY_RUN,
    accept: bool = _ACCEPT,
    address: Word = flag(
        "https://…/manifest.json#ed25519=KEY",
        "A published catalog instead of the lists, with its key.",
        "--from",
    ),
    store: Word = STORE,
) -> None:
    """Renew prices from public lists, without any account; accounts that are there are used.

    Exit codes: 0 all providers updated, 5 some of them, 6 nothing published.

    \b
    recommend catalog update
    recommend catalog update --from 'https://…/manifest.json#ed25519=KEY'
    """
    if address:
        _take_over(address, store)
        return

    errors = ErrorCollector()
    wanted = errors.parse_all(provider, "--provider", one_of(tuple(CLOUDS)))
    errors.raise_all()
    makers = update_makers(wanted or CLOUDS)
    if not makers:
        raise CatalogError(
            f"no public list has prices of {', '.join(wanted)}; the shipped ones stay"
        )
    _renew(flags, dict(makers), dry_run, accept, store)


def _take_over(address: str, store: str | None) -> None:
    """Publish in the store what an address serves and a key has signed."""

    plain, pin = pinned(address)
    if pin == Pin():
        raise CatalogError(
            f"--from {plain}: names no key, so anybody could have written it; add #ed25519=KEY, as "
            "its publisher prints it"
        )
    found = load_remote(address, default_cache(), notify=_notify)
    warn(found.notes)
    if not found.manifest:
        raise typer.Exit(NOTHING)  # the server does not answer: the version that holds stays
    name, problems = import_published(
        store_at(store), found.catalog, found.manifest, plain, SNAPSHOT, now()
    )
    warn(tuple(problems))
    write_text(f"version {name} holds\n" if name else "the newest version is held already\n")


def refresh(
    flags: PageFlags,
    provider: Words = PROVIDERS,
    dry_run: bool = _DRY_RUN,
    accept: bool = _ACCEPT,
    store: Word = STORE,
) -> None:
    """Fetch today's offers from the providers, check them and publish a new version.

    Exit codes: 0 all providers updated, 5 some of them, 6 nothing published.

    \b
    recommend catalog refresh
    recommend catalog refresh --provider aws --dry-run
    """
    _renew(flags, _makers(provider), dry_run, accept, store)


def _renew(
    flags: PageFlags, makers: "dict[str, Maker]", dry_run: bool, accept: bool, store: str | None
) -> None:
    """Fetch, check, publish, and show what became of each provider."""
    from recommender.catalogs.refresh.run import RefreshRequest
    from recommender.catalogs.refresh.run import refresh as run

    form = form_of(flags)
    order = RefreshRequest(
        store=store_at(store),
        makers=makers,
        dry_run=dry_run,
        accept=accept,
        clock=now,
        notify=_notify,
    )
    try:
        report = run(order)
    except CatalogError as error:
        code = report_errors(
            ["--json"] if form.kind == "json" else [], "CATALOG", NOTHING, [redacted(str(error))]
        )
        raise typer.Exit(code) from None
    show_page(refresh_page(facts(report)), form)
    raise typer.Exit({"published": 0, "partial": PARTIAL, "nothing": NOTHING}[report.outcome])


def quotas(
    provider: Words = PROVIDERS, region: Words = flag("NAME", "Only this region; repeatable.")
) -> None:
    """Print the quotas of your account in the format that --quota reads.

    \b
    recommend catalog quotas --provider aws > quotas.csv
    """

    write_text(quota_text(_quotas(provider, _regions(region))))


def _quotas(provider: list[str] | None, regions: tuple[str, ...]) -> "list[QuotaValue]":
    makers, catalog = _makers(provider), load_snapshot()
    wanted = {
        name: Wanted(
            types={
                t.instance_type: t for t in catalog.instance_types.values() if t.provider == name
            },
            gpus=catalog.gpus,
            now=now(),
            parts=frozenset({"quotas"}),
            regions=regions,
            progress=_notify,
        )
        for name in makers
    }
    found: list[QuotaValue] = []
    problems = []
    for name, each in collect(makers, wanted).items():
        if each.fetched is None:
            problems.append(f"{name}: {each.problem}")
        else:
            found += each.fetched.quotas
            for warning in each.fetched.warnings:
                _notify(f"{name}: {warning}")
            problems += [f"{name} {place.region}: {place.reason}" for place in each.fetched.failed]
    if not found:
        reasons = "; ".join(problems or ["none is set"])
        raise CatalogError(
            f"no quota could be read: {reasons}. Write the file by hand (columns provider, family, "
            "amount), or plan with --quota default-new, those of a new account"
        )
    for problem in problems:
        _notify(problem)
    return _of_known_regions(found)


def _of_known_regions(quotas: "list[QuotaValue]") -> "list[QuotaValue]":
    """The quotas of regions that plans can use; --quota refuses a file that names others."""
    catalog = open_catalog(None).catalog
    known = set(zip(catalog.offers.provider, catalog.offers.region, strict=True))
    others = sorted({(q.provider, q.region) for q in quotas if q.region} - known)
    for provider, region in others:
        _notify(f"{provider} {region}: no offer there is known; its quotas are left out")
    return [q for q in quotas if (q.provider, q.region) not in others]


def _makers(names: list[str] | None) -> "dict[str, Maker]":
    errors = ErrorCollector()
    wanted = errors.parse_all(names, "--provider", one_of(OWN_CLIENTS))
    errors.raise_all()
    return dict(makers(wanted or OWN_CLIENTS))


def _regions(names: list[str] | None) -> tuple[str, ...]:
    errors = ErrorCollector()
    regions = errors.parse_all(names, "--region", name_of)
    errors.raise_all()
    return regions


def _notify(message: str) -> None:
    """Progress goes to standard error, without secrets and on one line."""

    write_text(f"{fmt.clean(redacted(message))}\n", sys.stderr)
