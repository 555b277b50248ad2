"""Finds the clients of the providers by name; each is imported at first use."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Provider
from recommender.catalogs.registry import OWN_CLIENTS

Maker = Callable[[], Provider]


def makers(names: Iterable[str] = OWN_CLIENTS) -> Mapping[str, Maker]:
    """The constructor of each provider's client, imported at first use."""
    return {name: _maker(name) for name in names}


def _maker(name: str) -> Maker:
    def make() -> Provider:
        try:
            client: Provider = import_module(
                f"recommender.catalogs.providers.{name}.provider"
            ).provider()
        except ImportError as error:
            reason = f"its client cannot be loaded ({error.name or error}); reinstall recommend"
            raise ProviderError(name, "library", reason) from error
        return client

    return make
