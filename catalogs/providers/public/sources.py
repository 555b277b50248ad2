"""Which public list each provider is read from, where no account is used."""

import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from recommender.catalogs.providers.clients import Maker, makers
from recommender.catalogs.providers.contract import Provider
from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS

# The module that reads the list of each provider; imported at first use.
_LISTS: Mapping[str, str] = MappingProxyType(
    {
        "aws": "aws",
        "ovh": "ovh",
        **dict.fromkeys(
            ("gcp", "lambda", "nebius", "oci", "runpod", "verda", "cloudrift"), "gpuhunt"
        ),
        **dict.fromkeys(("hyperstack", "jarvislabs", "lium", "seeweb", "vast"), "skypilot"),
    }
)


def update_makers(names: Iterable[str] = CLOUDS) -> Mapping[str, Maker]:
    """The client of each provider: its own where it needs no account or finds one, else a list.

    Own clients read zones, histories and exact products, so they win where they can be asked.
    Providers without a public list are left out: their last prices stay.
    """
    wanted = list(names)
    asked = [name for name in wanted if name in OWN_CLIENTS and has_account(name)]
    found: dict[str, Maker] = {**makers(asked)}
    found |= {
        name: _maker(_LISTS[name], name) for name in wanted if name in _LISTS and name not in found
    }
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


def _maker(module: str, name: str) -> Maker:
    def make() -> Provider:
        reader: Provider = import_module(f"{__package__}.{module}").reader(name)
        return reader

    return make
