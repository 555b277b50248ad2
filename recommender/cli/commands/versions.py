"""`recommend catalog diff`, `history`, `rollback`, `export`, `import`: the kept versions."""

from pathlib import Path

from recommender.catalogs.archive import export as write
from recommender.catalogs.archive import import_into
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.history import MISSING, difference, has_pyarrow, points
from recommender.catalogs.load import SNAPSHOT, load, load_snapshot
from recommender.catalogs.publication import publish_signed
from recommender.catalogs.store import Store, roll_back, sequence
from recommender.cli.flags import REQUIRED, Word, argument, flag
from recommender.cli.open_catalog import store_at, warn
from recommender.cli.options import STORE, PageFlags
from recommender.cli.output import show_page
from recommender.cli.screen import write_text
from recommender.cli.written_files import draw, picture_path
from recommender.inputs.units.times import now
from recommender.report.versions import difference_page
from recommender.text import shown

SHIPPED = "shipped"


def diff(
    flags: PageFlags,
    before: Word = argument("[A]", "Version to compare with (the previous one).", None),
    after: Word = argument("[B]", "Version that is compared (the current one).", None),
    store: Word = STORE,
) -> None:
    """Show what changed between two versions; `shipped` names the snapshot.

    \b
    recommend catalog diff
    recommend catalog diff shipped
    """

    opened = store_at(store)
    _refuse_empty(opened)
    new = named_version(opened, after) if after else _held(opened)
    old = named_version(opened, before) if before else _before(opened, new)
    found = difference(load_version(opened, old), load_version(opened, new))
    show_page(difference_page(found, old, new), flags)


def history(
    flags: PageFlags,
    instance: str = argument("INSTANCE", "The instance type."),
    region: str = flag("NAME", "The region.", default=REQUIRED),
    plot: Word = flag("FILE", "Draw the prices (.svg, .png); extra `plot`."),
    store: Word = STORE,
) -> None:
    """Show how the prices of a machine in a region have moved.

    \b
    recommend catalog history p5.48xlarge --region us-east-1
    """
    from recommender.report import versions

    picture = picture_path(plot)
    opened = store_at(store)
    notes: list[str] = []
    found = points(opened, instance, region, notes.append)
    warn(tuple(notes))
    if not found:
        raise CatalogError(
            f"no price of {shown(instance)} in {shown(region)} is shipped, or in {opened.root}; "
            "names are those of recommend catalog show"
        )
    kept = opened.names()
    below = [f"{len(kept)} versions; {MISSING}"] if kept and not has_pyarrow() else []
    if picture is not None:
        from recommender.report.html.picture import prices_spec

        draw(picture, prices_spec(f"{instance} in {region}", versions.curves(found)))
    show_page(versions.history_page(found, instance, region, below), flags)


def rollback(
    version: Word = argument("[VERSION]", "Version to make current (the previous one).", None),
    store: Word = STORE,
) -> None:
    """Make an earlier version current; the next refresh starts from it.

    \b
    recommend catalog rollback
    """

    opened = store_at(store)
    _refuse_empty(opened)
    name = roll_back(opened, named_version(opened, version) if version else None)
    write_text(f"version {name} holds\n")


def export(
    file: str = argument("FILE", "A .tar.gz, .tar or .zip file, or a new folder."),
    version: Word = argument("[VERSION]", "Version to export (the current one).", None),
    store: Word = STORE,
) -> None:
    """Write a version with its checksums, to share or serve it.

    \b
    recommend catalog export catalog.tar.gz
    """

    opened = store_at(store)
    name = named_version(opened, version) if version else _held(opened)
    if name == SHIPPED:
        _refuse_empty(opened)
        raise CatalogError(
            "the shipped snapshot comes with every installation; name a version to export"
        )
    write_text(f"{write(opened, name, Path(file))}\n")


def publish(
    folder: str = argument("FOLDER", "A new folder, for a web server to serve."),
    key: str = flag("FILE", "Private key of Ed25519 (PEM).", default=REQUIRED),
    old_key: Word = flag("FILE", "The key before, which names this one."),
    store: Word = STORE,
) -> None:
    """Write the version that holds, signed, and print what its readers name.

    \b
    openssl genpkey -algorithm ed25519 -out key.pem
    recommend catalog publish public --key key.pem
    """

    opened = store_at(store)
    name = _held(opened)
    if name == SHIPPED:
        raise CatalogError(
            f"{opened.root}: no version to publish; recommend catalog update fetches one"
        )
    old = None if old_key is None else Path(old_key)
    named = publish_signed(opened, name, Path(folder), Path(key), now(), old)
    write_text(
        f"{folder}: version {name}, signed\n"
        f"readers: recommend catalog update --from 'https://YOUR-HOST/manifest.json#ed25519={named}'\n"
    )


def import_(
    file: str = argument("FILE", "What `export` wrote: a file or a folder."),
    store: Word = STORE,
) -> None:
    """Publish an exported version in this store; its prices are marked as imported.

    \b
    recommend catalog import catalog.tar.gz
    """

    name, problems = import_into(store_at(store), Path(file), SNAPSHOT, now())
    warn(tuple(problems))
    write_text(f"version {name} holds\n")


def _refuse_empty(store: "Store") -> None:
    if not store.names():
        raise CatalogError(
            f"{store.root}: no version is kept yet; recommend catalog refresh fetches the first, "
            "recommend catalog import FILE takes one over (plans use the shipped snapshot)"
        )


def _held(store: "Store") -> str:
    return store.current_or_newest() or SHIPPED


def _before(store: "Store", name: str) -> str:
    names = store.names()
    earlier = names[: names.index(name)] if name in names else ()
    return earlier[-1] if earlier else SHIPPED


def named_version(store: "Store", word: str) -> str:
    """The version that a word means: its name, or the number that it begins with."""
    if word == SHIPPED:
        return SHIPPED

    found = [
        name
        for name in store.names()
        if name == word or (word.isdecimal() and sequence(name) == int(word))
    ]
    if not found:
        known = ", ".join(name.partition("-")[0] for name in store.names()) or "none"
        raise CatalogError(f"{store.root}: no version {shown(word)}; kept: {known}")
    return found[0]


def load_version(store: "Store", name: str) -> "Catalog":
    """The catalog of a version of a store, or the shipped snapshot."""

    return load_snapshot() if name == SHIPPED else load(store.path(name))
