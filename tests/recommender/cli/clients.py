"""Clients of the three providers that hand over the shipped prices as today's."""

from collections.abc import Sequence
from functools import cache
from types import ModuleType

import pytest

from recommender.catalogs.providers.contract import Fetched, QuotaValue, Wanted
from recommender.catalogs.schema import Offer
from tests.catalogs.refresh.world import Client, Fault, honest
from tests.shipped import snapshot

SECRET = "canary+Secret/0123456789abcdefABCDEF0123"


class Cloud(Client):
    """A client that knows quotas as well."""

    def fetch(self, wanted: Wanted) -> Fetched:
        """Hand over offers, or quotas where only these are wanted."""
        wanted.progress("page 1 of 1")
        found = super().fetch(wanted)
        if wanted.parts != {"quotas"}:
            return found
        quotas = tuple(
            QuotaValue(
                self.name, "Running On-Demand P instances", "on_demand", region, "vcpu", 192.0
            )
            for region in wanted.regions or ("us-east-1",)
        )
        return Fetched(
            provider=self.name, started=wanted.now, finished=wanted.now, markets=frozenset(),
            offers=(), sources=(), quotas=quotas,
        )  # fmt: skip


@cache
def truth(name: str) -> Sequence[Offer]:
    """The shipped offers of a provider that its price lists quote: not derived, not booked."""
    quoted = (o for o in snapshot().offers if o.provider == name and o.kind != "derived")
    return tuple(o for o in quoted if o.market in ("on_demand", "spot"))


def install(
    monkeypatch: pytest.MonkeyPatch,
    faults: dict[str, Fault] | None = None,
    errors: dict[str, BaseException] | None = None,
) -> None:
    """Put the clients where the tool looks for them."""
    for name in ("aws", "gcp", "azure"):
        client = Cloud(
            name, truth(name), (faults or {}).get(name, honest), (errors or {}).get(name)
        )
        module = ModuleType(f"recommender.catalogs.providers.{name}.provider")
        module.provider = lambda client=client: client  # type: ignore[attr-defined]
        monkeypatch.setitem(
            __import__("sys").modules, f"recommender.catalogs.providers.{name}.provider", module
        )
