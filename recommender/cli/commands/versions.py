"""`recommend catalog diff`, `history`, `rollback`, `export`, `import`: the kept versions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recommender.catalogs.errors import CatalogError
from recommender.cli.commands.refresh import STORE
from recommender.cli.open_catalog import store_at, warn
from recommender.cli.options import PageFlags, Word
from recommender.cli.output import show_page
from recommender.cli.screen import write_text
from recommender.cli.written_files import draw, picture_path
from recommender.inputs.units.times import now
from recommender.text import shown

if TYPE_CHECKING:
    from recommender.catalogs.catalog import Catalog
    from recommender.catalogs.store import Store

SHIPPED = "shipped"


def _version(help: str, metavar: str) -> typer.models.ArgumentInfo:
    info: typer.models.ArgumentInfo = typer.Argument(metavar=metavar, help=help, show_default=False)
    return info


def diff(
    flags: PageFlags,
    before: Annotated[
        str | None, _version("Version to compare with (the previous one).", "[A]")
    ] = None,
    after: Annotated[
        str | None, _version("Version that is compared (the current one).", "[B]")
    ] = None,
    store: STORE = None,
) -> None:
    """Show what changed between two versions; `shipped` names the snapshot.

    \b
    recommend catalog diff
    recommend catalog diff shipped
    """
    from recommender.catalogs.history import difference
    from recommender.report.versions import difference_page

    opened = store_at(store)
    _refuse_empty(opened)
    new = named_version(opened, after) if after else _held(opened)
    old = named_version(opened, before) if before else _before(opened, new)
    found = difference(load_version(opened, old), load_version(opened, new))
    show_page(difference_page(found, old, new), flags)


def history(
    flags: PageFlags,
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The instance type.")],
    region: Annotated[str, typer.Option(help="The region.", metavar="NAME")],
    plot: Annotated[
        Word, typer.Option(help="Draw the prices (.svg, .png); extra `plot`.", metavar="FILE")
    ] = None,
    store: STORE = None,
) -> None:
    """Show how the prices of a machine in a region have moved.

    \b
    recommend catalog history p5.48xlarge --region us-east-1
    """
    from recommender.catalogs.history import MISSING, has_pyarrow, points
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
    version: Annotated[
        str | None, _version("Version to make current (the previous one).", "[VERSION]")
    ] = None,
    store: STORE = None,
) -> None:
    """Make an earlier version current; the next refresh starts from it.

    \b
    recommend catalog rollback
    """
    from recommender.catalogs.store import roll_back

    opened = store_at(store)
    _refuse_empty(opened)
    name = roll_back(opened, named_version(opened, version) if version else None)
    write_text(f"version {name} holds\n")


def export(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .tar.gz, .tar or .zip file, or a new folder.")
    ],
    version: Annotated[
        str | None, _version("Version to export (the current one).", "[VERSION]")
    ] = None,
    store: STORE = None,
) -> None:
    """Write a version with its checksums, to share or serve it.

    \b
    recommend catalog export catalog.tar.gz
    """
    from recommender.catalogs.archive import export as write

    opened = store_at(store)
    name = named_version(opened, version) if version else _held(opened)
    if name == SHIPPED:
        _refuse_empty(opened)
        raise CatalogError(
            "the shipped snapshot comes with every installation; name a version to export"
        )
    write_text(f"{write(opened, name, Path(file))}\n")


def publish(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A new folder, for a web server to serve.")
    ],
    key: Annotated[
        str, typer.Option("--key", help="Private key of Ed25519 (PEM).", metavar="FILE")
    ],
    old_key: Annotated[
        str | None,
        typer.Option("--old-key", help="The key before, which names this one.", metavar="FILE"),
    ] = None,
    store: STORE = None,
) -> None:
    """Write the version that holds, signed, and print what its readers name.

    \b
    openssl genpkey -algorithm ed25519 -out key.pem
    recommend catalog publish public --key key.pem
    """
    from recommender.catalogs.publication import publish_signed

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
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `export` wrote: a file or a folder.")
    ],
    store: STORE = None,
) -> None:
    """Publish an exported version in this store; its prices are marked as imported.

    \b
    recommend catalog import catalog.tar.gz
    """
    from recommender.catalogs.archive import import_into
    from recommender.catalogs.load import SNAPSHOT

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
    from recommender.catalogs.store import sequence

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
    from recommender.catalogs.load import load, load_snapshot

    return load_snapshot() if name == SHIPPED else load(store.path(name))
