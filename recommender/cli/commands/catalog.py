"""`recommend catalog`: which offers are known and how old their prices are."""

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.history import recent_prices
from recommender.cli.commands import refresh, versions
from recommender.cli.error_collector import ErrorCollector, known_region, one_of
from recommender.cli.flags import Word, argument, flag
from recommender.cli.groups import add_command, command_app, group_app
from recommender.cli.open_catalog import load_catalog, open_catalog, open_store, store_at, warn
from recommender.cli.options import CATALOG, STORE, TOP, PageFlags
from recommender.cli.output import show_page
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.text import shown, unknown

VERSIONS = 8  # of a store that trends are read from: 0.1 s each

group = group_app("catalog", "Show and refresh offers and prices.")


def status(flags: PageFlags, catalog: Word = CATALOG, store: Word = STORE) -> None:
    """Show the number of offers of each provider, and their age.

    \b
    recommend catalog status
    """
    from recommender.report import catalog as catalog_view
    from recommender.report import store as store_view

    opened = open_store(store_at(store)) if store and not catalog else open_catalog(catalog)
    warn(opened.notes)
    page = catalog_view.status(opened.catalog, opened.name)
    if opened.store is not None:
        page = store_view.with_store(page, store_view.held(opened.store, opened.version))
    show_page(page, flags)


def show(
    flags: PageFlags,
    word: Word = argument("[NAME]", "Part of the name of an instance type or GPU.", None),
    provider: Word = flag("aws|lambda|…", "Only this provider."),
    region: Word = flag("NAME", "Only this region."),
    market: Word = flag("spot|on-demand|flex-start|…", "Only this market."),
    top: Word = TOP,
    catalog: Word = CATALOG,
) -> None:
    """List offers by price per GPU, with FLOP per dollar and price history.

    \b
    recommend catalog show H100 --market spot
    """
    from recommender.report import catalog as catalog_view

    errors = ErrorCollector()
    most = errors.parse(top, "--top", units.whole_of("20"), 20)
    wanted = errors.parse(provider, "--provider", one_of(units.PROVIDERS), "")
    kind = errors.market(market)
    errors.raise_all()
    loaded = load_catalog(catalog)
    found = catalog_view.matching(loaded, word or "", wanted, known_region(region, loaded), kind)
    if not found:
        raise UsageError(_no_offer(word or "", loaded))
    opened = store_at(None if catalog and "://" in catalog else catalog)
    trends = recent_prices(opened, map(catalog_view.offer_key, found[:most]), VERSIONS)
    show_page(catalog_view.offers(loaded, found, most, trends), flags)


def _no_offer(word: str, loaded: "Catalog") -> str:
    """That nothing matches, with the name that was probably meant."""
    listing = "recommend catalog status lists what there is"
    names = {name for _, name in loaded.instance_types} | set(loaded.gpus)
    if word and not any(word.lower() in name.lower() for name in names):
        return unknown("GPU or machine", word, names, listing)
    return (
        f"no offer of {shown(word)} matches; {listing}" if word else f"no offer matches; {listing}"
    )


def sources(flags: PageFlags, catalog: Word = CATALOG) -> None:
    """List the sources of all figures, and their licences.

    \b
    recommend sources
    """
    from recommender.report import catalog as catalog_view

    show_page(catalog_view.sources(load_catalog(catalog)), flags)


add_command(group, "status", status)
add_command(group, "show", show)
add_command(group, "update", refresh.update)
add_command(group, "refresh", refresh.refresh)
add_command(group, "quotas", refresh.quotas)
add_command(group, "diff", versions.diff)
add_command(group, "history", versions.history)
add_command(group, "rollback", versions.rollback)
add_command(group, "export", versions.export)
add_command(group, "publish", versions.publish)
add_command(group, "import", versions.import_)
sources_command = command_app("sources", sources)
