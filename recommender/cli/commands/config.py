"""`recommend config`: saved defaults, and where each comes from."""

from pathlib import Path

from recommender.cli.flags import argument
from recommender.cli.groups import add_command, group_app
from recommender.cli.options import PageFlags
from recommender.cli.output import show_page
from recommender.cli.screen import write_text
from recommender.inputs import settings
from recommender.report.jobs import settings_page

group = group_app("config", "Your default settings.")


def show(flags: PageFlags) -> None:
    """Show every setting, its value and where it comes from.

    \b
    recommend config show
    """

    show_page(settings_page(settings.load({}, Path()), settings.user_path()), flags)


def set_value(
    key: str = argument("KEY", "Name of the setting."),
    value: list[str] = argument("VALUE...", "Its value or values."),
) -> None:
    """Save a setting in your own settings file.

    \b
    recommend config set providers aws gcp
    recommend config set confidence 90%
    """

    path = settings.save(key.replace("-", "_"), tuple(value))
    write_text(f"{key} = {' '.join(value)} in {path}\n")


def unset(
    key: str = argument("KEY", "Name of the setting."),
) -> None:
    """Remove a setting from your own settings file.

    \b
    recommend config unset max_age
    """

    path, kept = settings.unset(key.replace("-", "_"))
    write_text(f"{key} {'removed from' if kept else 'is not kept in'} {path}\n")


add_command(group, "show", show)
add_command(group, "set", set_value)
add_command(group, "unset", unset)
