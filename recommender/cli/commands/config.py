"""`recommend config`: saved defaults, and where each comes from."""

from pathlib import Path
from typing import Annotated

import typer

from recommender.cli.groups import add_command, group_app
from recommender.cli.options import PageFlags
from recommender.cli.output import show_page
from recommender.cli.screen import write_text

group = group_app("config", "Your default settings.")


def show(flags: PageFlags) -> None:
    """Show every setting, its value and where it comes from.

    \b
    recommend config show
    """
    from recommender.inputs import settings
    from recommender.report.jobs import settings_page

    show_page(settings_page(settings.load({}, Path()), settings.user_path()), flags)


def set_value(
    key: Annotated[str, typer.Argument(help="Name of the setting.", metavar="KEY")],
    value: Annotated[list[str], typer.Argument(help="Its value or values.", metavar="VALUE...")],
) -> None:
    """Save a setting in your own settings file.

    \b
    recommend config set providers aws gcp
    recommend config set confidence 90%
    """
    from recommender.inputs import settings

    path = settings.save(key.replace("-", "_"), tuple(value))
    write_text(f"{key} = {' '.join(value)} in {path}\n")


def unset(
    key: Annotated[str, typer.Argument(help="Name of the setting.", metavar="KEY")],
) -> None:
    """Remove a setting from your own settings file.

    \b
    recommend config unset max_age
    """
    from recommender.inputs import settings

    path, kept = settings.unset(key.replace("-", "_"))
    write_text(f"{key} {'removed from' if kept else 'is not kept in'} {path}\n")


add_command(group, "show", show)
add_command(group, "set", set_value)
add_command(group, "unset", unset)
