"""Reads Google's price list with its own client: pages, retries and error handling."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from recommender.catalogs.errors import ProviderError, ProviderFault
from recommender.catalogs.providers.contract import SeenPages, Wanted
from recommender.catalogs.providers.gcp.price_parts import Sku

if TYPE_CHECKING:
    from google.cloud.billing_v1 import CloudCatalogClient

COMPUTE_ENGINE = "services/6F81-5844-456A"
API_KEY, API_KEY_FILE = "RECOMMEND_GCP_API_KEY", "RECOMMEND_GCP_API_KEY_FILE"
PROJECT, HISTORY = "GOOGLE_CLOUD_PROJECT", "RECOMMEND_GCP_CAPACITY_HISTORY"
_STALE, _AHEAD = timedelta(days=7), timedelta(hours=1)  # of the clock of this machine
_PAGE = 5000  # the most that the API gives
_MAX_PAGES = 200  # 30,000 SKUs in 2026 are six pages

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to access Google Cloud."""

    api_key: str = field(default="", repr=False)  # empty: application default credentials
    project: str = ""  # empty: machine types as shipped, no Compute Engine call
    capacity_history: bool = False  # check spot prices with the beta advice of Compute Engine
    endpoint: str = ""  # of the price list; "http…" is called by REST, empty: Google's by gRPC
    compute: str = "https://compute.googleapis.com"
    first_wait_s: float = 1.0
    retry_s: float = 90.0  # of one page


def settings_from(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment: a key, or the file that holds one.

    Raises:
        ProviderError: the file of the key cannot be read.
    """
    key = env.get(API_KEY, "").strip()
    if not key and (path := env.get(API_KEY_FILE, "")):
        try:
            key = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = f"the file named by {API_KEY_FILE} cannot be read; check its path and mode"
            raise ProviderError("gcp", "credentials", reason) from error
    return Settings(
        api_key=key,
        project=env.get(PROJECT, "").strip(),
        capacity_history=env.get(HISTORY, "") == "1",
    )


def make_client(settings: Settings) -> "CloudCatalogClient":
    """Make Google's client; an API key is sent in a header, never in an address.

    Raises:
        google.auth.exceptions.DefaultCredentialsError: neither key nor credentials were found.
    """
    from google.cloud.billing_v1 import CloudCatalogClient

    options: dict[str, str] = {}
    if settings.api_key:
        options["api_key"] = settings.api_key
    if settings.endpoint:
        options["api_endpoint"] = settings.endpoint
    transport = "rest" if settings.endpoint.startswith("http") else "grpc"
    return CloudCatalogClient(transport=transport, client_options=options)


class PriceList:
    """The SKUs of Compute Engine, one page at a time; counts requests and rows."""

    def __init__(self, client: "CloudCatalogClient", settings: Settings, wanted: Wanted) -> None:
        self._client, self._settings, self._wanted = client, settings, wanted
        self.pages = self.rows = self.retries = self.bytes = 0

    def skus(self) -> Iterator[Sku]:
        """Iterate over every SKU.

        Raises:
            ProviderError: what kept the list from being read as a whole.
        """
        pages, seen = self._pages(), SeenPages("gcp", _MAX_PAGES)
        while True:
            self._wanted.check_time("gcp")
            page = guarded(lambda: next(pages, None), self._settings)
            if page is None:
                break
            self.pages += 1
            self.rows += len(page.skus)
            self.bytes += page.ByteSize()
            self._wanted.progress(f"{self.rows} SKUs read")
            seen.add(b"".join(sku.SerializeToString() for sku in page.skus))
            for sku in page.skus:
                yield _sku(sku, self._wanted.now)
        if self.rows == 0:
            raise ProviderError("gcp", "format", "the price list is empty")

    def _pages(self) -> Iterator[Any]:
        """Pages as plain protobuf messages: Google's wrappers take five times as long."""
        from google.cloud.billing_v1 import ListSkusRequest, ListSkusResponse

        request = ListSkusRequest(parent=COMPUTE_ENGINE, currency_code="USD", page_size=_PAGE)
        pager = self._client.list_skus(
            request, retry=self._retry(), timeout=self._wanted.call_timeout_s
        )
        for page in pager.pages:
            yield ListSkusResponse.pb(page)

    def _retry(self) -> Any:
        """Retries of our own: Google's client has none by default."""
        from google.api_core.retry import Retry

        left = min(self._settings.retry_s, self._wanted.stop_at - time.monotonic())
        return Retry(
            predicate=_is_transient,
            initial=self._settings.first_wait_s,
            maximum=30.0,
            multiplier=2.0,
            timeout=left,
            on_error=self._count,
        )

    def _count(self, error: Exception) -> None:
        self.retries += 1


def _is_transient(error: Exception) -> bool:
    import requests
    from google.api_core import exceptions

    passing = (
        exceptions.ServerError,  # 500, 502, 503, 504, deadline exceeded
        exceptions.TooManyRequests,  # and RESOURCE_EXHAUSTED
        requests.exceptions.ConnectionError,
        requests.exceptions.ChunkedEncodingError,
        requests.exceptions.Timeout,
    )
    return isinstance(error, passing)


def guarded(read: Callable[[], Read], settings: Settings) -> Read:
    """Call Google's library; convert its errors to `ProviderError` without secrets."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError
    from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]

    try:
        return read()
    except RetryError as error:
        cause = error.cause
        message = _short_error(cause, settings)
        raise ProviderError(
            "gcp", _fault(cause), f"no answer after all retries: {message}"
        ) from None
    except GoogleAuthError as error:
        raise ProviderError("gcp", "credentials", _sign_in(error, settings)) from None
    except (ParseError, ValueError) as error:
        reason = (
            f"an answer cannot be read ({type(error).__name__}: {_short_error(error, settings)})"
        )
        raise ProviderError("gcp", "format", reason) from None
    except (GoogleAPICallError, requests.exceptions.RequestException) as error:
        fault = _fault(error)
        message = _short_error(error, settings)
        reason = _sign_in(error, settings) if fault == "credentials" else message
        raise ProviderError("gcp", fault, reason) from None


def _sign_in(error: Exception, settings: Settings) -> str:
    from google.auth.exceptions import DefaultCredentialsError

    message = (
        "none found"
        if isinstance(error, DefaultCredentialsError)
        else _short_error(error, settings)
    )
    what = "the API key was refused" if settings.api_key else "no usable credentials"
    return (
        f"{what} ({message}); set {API_KEY} to a key for the Cloud Billing API, "
        f"or sign in with application default credentials"
    )


def _fault(error: object) -> ProviderFault:
    import requests
    from google.api_core import exceptions

    kinds: tuple[tuple[type[Exception], ProviderFault], ...] = (
        (exceptions.TooManyRequests, "throttled"),
        (exceptions.Unauthorized, "credentials"),
        (exceptions.Forbidden, "credentials"),
        (exceptions.GatewayTimeout, "timeout"),
        (exceptions.ServerError, "server"),
        (requests.exceptions.Timeout, "timeout"),
        (requests.exceptions.RequestException, "network"),
    )
    if isinstance(error, exceptions.BadRequest):
        return "credentials" if "key" in str(error).lower() else "server"
    return next((fault for kind, fault in kinds if isinstance(error, kind)), "server")


def _short_error(error: object, settings: Settings) -> str:
    """The first words of an error, without addresses and without the key."""
    text = re.sub(r"(?<!\w)\w++://\S+", "", str(getattr(error, "message", "") or error))
    if settings.api_key:
        text = text.replace(settings.api_key, "[hidden]")
    words = " ".join(text.split())[:200].strip()
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _sku(raw: Any, now: datetime) -> Sku:
    infos = list(raw.pricing_info)
    newest = max(infos, key=lambda info: info.effective_time.ToNanoseconds(), default=None)
    pricing = newest.pricing_expression if newest is not None else None
    tiers = list(pricing.tiered_rates) if pricing is not None else []
    currencies = {tier.unit_price.currency_code for tier in tiers}
    return Sku(
        description=raw.description,
        group=raw.category.resource_group,
        usage=raw.category.usage_type,
        regions=tuple(raw.service_regions),
        unit=pricing.usage_unit if pricing is not None else "",
        currency=currencies.pop() if len(currencies) == 1 else "",
        rates=tuple(
            (tier.start_usage_amount, tier.unit_price.units + tier.unit_price.nanos / 1e9)
            for tier in tiers
        ),
        odd=_odd(newest, infos, now) if newest is not None else None,
    )


def _odd(info: Any, infos: Sequence[Any], now: datetime) -> tuple[str, str] | None:
    """The rule that a price breaks whose fields do not say what they always say, and how.

    Without a time range in the request, a price is effective from within the last 12 hours (Cloud
    Billing API, `PricingInfo`, 2026-11); rates of USD are converted by 1, and counted one by one.
    """
    since, told = info.effective_time.ToDatetime(tzinfo=UTC), info.pricing_expression
    if not now - _STALE < since < now + _AHEAD:
        return "date", f"it holds from {since:%Y-%m-%d %H:%M} on"
    if any(each != info and each.effective_time == info.effective_time for each in infos):
        return "duplicate", f"several prices hold from {since:%Y-%m-%d %H:%M} on"
    if info.currency_conversion_rate != 1:
        return "currency", f"converted at a rate of {info.currency_conversion_rate:g}"
    if told.display_quantity not in (0, 1):
        return "unit", f"a price of {told.display_quantity:g} units"
    base = told.base_unit, told.base_unit_conversion_factor
    if told.usage_unit == "h" and base not in (("s", 3600), ("", 0)):
        return "unit", f"an hour of {base[1]:g} {base[0]}"
    if info.HasField("aggregation_info") and told.usage_unit.endswith("h"):
        return "tiers", "hours are added up over a month or an account"
    return None
