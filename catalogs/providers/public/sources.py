"""Which public list each provider is read from, where no account is used."""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path

from recommender.catalogs.providers.clients import Maker, makers
from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS


def update_makers(names: Iterable[str] = CLOUDS) -> Mapping[str, Maker]:
    """The client of each provider: its own where it needs no account or finds one, else a list.

    Own clients read zones, histories and exact products, so they win where they can be asked.
    Providers without a public list are left out: their last prices stay.
    """
    wanted = list(names)
    asked = [name for name in wanted if name in OWN_CLIENTS and has_account(name)]
    lists = _lists()
    found: dict[str, Maker] = {**makers(asked)}
    found |= {name: lists[name] for name in wanted if name in lists and name not in found}
    return {name: found[name] for name in wanted if name in found}


def has_account(name: str) -> bool:
    """Whether a provider's own client needs no account, or the machine has one."""
    info = CLOUDS[name]
    files = (Path(path).expanduser() for path in info.credential_files)
    needs_none = not (info.credential_variables or info.credential_files)
    return (
        needs_none
        or any(os.environ.get(variable) for variable in info.credential_variables)
        or any(path.is_file() for path in files)
    )


def _lists() -> dict[str, Maker]:
    """The reader of each list; loaded here, as answers need no library of HTTP."""
    package = "recommender.catalogs.providers.public"
    aws, gpuhunt, skypilot = (
        import_module(f"{package}.{name}") for name in ("aws", "gpuhunt", "skypilot")
    )
    return {
        "aws": aws.AwsLists,
        **{name: partial(gpuhunt.GpuhuntCatalog, name) for name in gpuhunt.NAMES},
        **{name: partial(skypilot.SkyPilotCatalog, name) for name in skypilot.NAMES},
    }
