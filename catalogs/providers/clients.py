"""Who is asked for a provider's prices: its own client, or a public list; imported at first use."""

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Provider
from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS

Maker = Callable[[], Provider]
# The module of `public` that reads the list of each provider.
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


def makers(names: Iterable[str] = OWN_CLIENTS) -> Mapping[str, Maker]:
    """The constructor of each provider's own client."""
    return {name: _maker(name, f"{name}.provider", "provider") for name in names}


def update_makers(names: Iterable[str] = CLOUDS) -> Mapping[str, Maker]:
    """The client of each provider: its own where it needs no account or finds one, else a list.

    Own clients read zones, histories and exact products, so they win where they can be asked.
    Providers without a public list are left out: their last prices stay.
    """
    found: dict[str, Maker] = {}
    for name in names:
        if name in OWN_CLIENTS and has_account(name):
            found |= makers([name])
        elif name in _LISTS:
            found[name] = _maker(name, f"public.{_LISTS[name]}", "reader", name)
    return found


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


def _maker(provider: str, module: str, function: str, *given: str) -> Maker:
    def make() -> Provider:
        try:
            made = getattr(import_module(f"{__package__}.{module}"), function)
        except ImportError as error:
            reason = f"its client cannot be loaded ({error.name or error}); reinstall recommend"
            raise ProviderError(provider, "library", reason) from error
        client: Provider = made(*given)
        return client

    return make
