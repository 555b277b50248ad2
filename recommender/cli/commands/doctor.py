"""Commands about the tool itself: `doctor` and `schema`."""

import os
import platform
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from recommender.catalogs.errors import RecommendError
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS, ProviderInfo
from recommender.catalogs.store import Store, default_root
from recommender.cli.exit_codes import CATALOG
from recommender.cli.groups import command_app
from recommender.cli.options import PageFlags
from recommender.cli.output import show_page
from recommender.cli.screen import write_text
from recommender.inputs import settings
from recommender.report.formatting import age_days
from recommender.report.json_output import schema_text
from recommender.report.page import Page, headings
from recommender.text import shown

_PACKAGES = ("numpy", "pulp", "highspy", "PyYAML", "typer", "rich")
_OLDEST = (3, 11)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what was found, and whether it is as it should be."""

    name: str
    good: bool
    found: str
    needed: bool = True

    @property
    def mark(self) -> str:
        """The verdict in one word."""
        return "ok" if self.good else ("WRONG" if self.needed else "none")


def all_checks() -> list[Check]:
    """Everything, in the order it is needed."""
    looks: tuple[Callable[[], Check], ...] = (
        _python,
        _packages,
        _solver,
        _settings,
        *(partial(_credentials, CLOUDS[name]) for name in OWN_CLIENTS),
        _store,
        _catalog,
    )
    return [look() for look in looks]


def checks_page(checks: Sequence[Check]) -> Page:
    """All checks, one row each."""
    columns = headings("check:", ":", "found:")
    rows = tuple((c.name, c.mark, c.found) for c in checks)
    facts = [{"check": c.name, "verdict": c.mark, "found": c.found} for c in checks]
    return Page("", columns, rows, 2, facts=facts)


def _python() -> Check:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Check("python", sys.version_info >= _OLDEST, found)


def _packages() -> Check:
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    message = ", ".join(found) if not missing else f"not installed: {', '.join(missing)}"
    return Check("packages", not missing, message)


def _solver() -> Check:
    """Solve one small program, as the planner would."""
    try:
        from recommender.optimize.linear_program import Model, solve
    except ImportError as error:
        return Check("solver", False, f"HiGHS cannot be loaded ({shown(error)})")
    model = Model("doctor", objective={"x": 2.0})
    model.variable("x", 2.0)
    model.row("half", {"x": 2.0}, ">=", 1.0)
    found = solve(model)
    good = found.status == "optimal" and abs(found.objective - 1.0) < 1e-9
    return Check("solver", good, f"HiGHS {version('highspy')}" + ("" if good else " errs"))


def _settings() -> Check:
    try:
        changed = [s for s in settings.load({}, Path()).values() if s.origin != "default"]
    except RecommendError as error:
        return Check("settings", False, str(error).replace("\n", "; "))
    message = f"{len(changed)} changed" if changed else "all default"
    return Check("settings", True, f"{message} (recommend config show)")


def _credentials(info: ProviderInfo) -> Check:
    """Whether credentials are present; what they are is never read."""
    if not (info.credential_variables or info.credential_files):
        return Check(info.label, True, "prices are public, no account needed", needed=False)
    found = [v for v in info.credential_variables if os.environ.get(v)]
    found += [path for path in info.credential_files if Path(path).expanduser().is_file()]
    message = f"credentials in {found[0]}" if found else "no credentials (answers need none)"
    return Check(info.label, bool(found), message, needed=False)


def _store() -> Check:
    """Whether refreshed prices are there; without any the shipped ones are used."""

    store = Store(default_root())
    try:
        held = store.current()
    except RecommendError as error:
        return Check("store", False, str(error), needed=False)
    message = (
        f"version {held} of {len(store.names())}" if held else "empty (recommend catalog refresh)"
    )
    return Check("store", held is not None, message, needed=False)


def _catalog() -> Check:
    try:
        catalog = load_snapshot()
    except RecommendError as error:
        return Check("catalog", False, str(error).replace("\n", "; "))
    newest = max(catalog.offers.as_of, default="")
    age = age_days(newest)
    days = "" if age is None else f", newest price {age} days old"
    return Check("catalog", True, f"{catalog.version}, checksums right{days}")


def doctor(flags: PageFlags) -> None:
    """Check the installation, without network and without showing secrets.

    \b
    recommend doctor
    """

    checks = all_checks()
    show_page(checks_page(checks), flags)
    if any(check.needed and not check.good for check in checks):
        raise typer.Exit(CATALOG if not checks[-1].good else 1)


def schema() -> None:
    """Print the JSON Schema of `recommend -o json`: answers and errors.

    \b
    recommend schema > recommend.plan.v1.json
    """

    write_text(schema_text())


doctor_command = command_app("doctor", doctor)
schema_command = command_app("schema", schema)
