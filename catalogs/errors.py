"""The errors of catalogs; `recommender.errors` adds its own."""

from typing import Literal

ProviderFault = Literal[
    "credentials",  # none found, expired, or not allowed to make the call
    "library",  # the provider's client library is not installed
    "network",  # no connection, no name, TLS
    "throttled",  # refused for too many calls, after all retries
    "server",  # the provider answered with an error of its own
    "format",  # the answer is truncated, malformed or of no known form
    "timeout",  # a deadline has passed
]


class RecommendError(Exception):
    """An error that a user can act on: what failed, the value, why, what to do."""


class CatalogError(RecommendError):
    """The catalog cannot be used: missing, truncated, corrupt, or older than allowed."""


class ProviderError(CatalogError):
    """A provider could not be read; `fault` is the kind of reason.

    The message never contains a credential, or a URL with its query.
    """

    def __init__(self, provider: str, fault: ProviderFault, reason: str) -> None:
        self.provider = provider
        self.fault = fault
        self.reason = reason
        super().__init__(f"{provider}: {reason}")


class StoreError(CatalogError):
    """The store of catalog versions cannot be read or written."""
