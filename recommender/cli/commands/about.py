"""Commands about the tool itself: `doctor` and `schema`."""

import typer

from recommender.cli.edge import CATALOG
from recommender.cli.flags import PageFlags
from recommender.cli.group import Careful
from recommender.cli.later import alone
from recommender.cli.pager import show_page
from recommender.cli.screen import put


def doctor(flags: PageFlags) -> None:
    """Check that everything the tool needs is there; no network, no secrets shown.

    \b
    recommend doctor
    """
    from recommender.cli.checks import all_checks, checks_page

    checks = all_checks()
    show_page(checks_page(checks), flags)
    if any(check.needed and not check.good for check in checks):
        raise typer.Exit(CATALOG if not checks[-1].good else 1)


def schema() -> None:
    """The JSON Schema of `recommend -o json`, answers and errors.

    \b
    recommend schema > recommend.plan.v1.json
    """
    from recommender.report.schemafile import schema_text

    put(schema_text())


doctor_command = alone("doctor", doctor, Careful)
schema_command = alone("schema", schema, Careful)
