"""AWS as large as it is: every machine and region of the shipped catalog, quick to answer."""

import json
from dataclasses import dataclass, field, fields
from typing import Any

from tests.catalogs.providers.aws.cloud import Cloud, Item, make_cloud
from tests.shipped import snapshot


@dataclass
class FullCloud(Cloud):
    """Makes each answer once, so that a refresh does not wait for the making of XML."""

    made: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes | None] = field(default_factory=dict)

    def _good(self, action: str, region: str, query: Item) -> bytes:
        key = json.dumps([action, region, query], sort_keys=True)
        if key not in self.made:
            self.made[key] = super()._good(action, region, query)
        return self.made[key]

    def file(self, path: str) -> bytes | None:
        """A public file as before."""
        if path not in self.files:
            self.files[path] = super().file(path)
        return self.files[path]

    def prices_changed(self) -> None:
        """Make the answers that hold prices again."""
        prices = ('["GetProducts"', '["DescribeSpotPriceHistory"')
        self.made = {key: each for key, each in self.made.items() if not key.startswith(prices)}
        self.files.clear()


def full_cloud() -> FullCloud:
    """All machines of AWS in the catalog, each spot price for both Linux products."""
    catalog = snapshot()
    names = tuple(name for provider, name in catalog.instance_types if provider == "aws")
    regions = sorted({o.region for o in catalog.offers if o.provider == "aws"})
    small = make_cloud(names, tuple(regions))
    held: dict[str, Any] = {each.name: getattr(small, each.name) for each in fields(small)}
    whole = FullCloud(**held)
    whole.page = 1000
    for quotes in whole.spot.values():
        quotes += [{**q, "ProductDescription": "Linux/UNIX (Amazon VPC)"} for q in quotes]
    sold = {(i["product"]["attributes"]["instanceType"], i["product"]["attributes"]["regionCode"])
            for i in whole.items}  # fmt: skip
    whole.gone = {(n, r) for n in names for r in regions if (n, r) not in sold}
    return whole
