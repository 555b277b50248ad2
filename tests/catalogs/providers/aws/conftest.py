"""A local AWS with invented credentials; retries do not wait."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore.client
import botocore.loaders
import pytest

from recommender.catalogs.providers.aws.provider import Aws
from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.providers.http import Patience
from tests.catalogs.providers.aws.cloud import CANARY, Cloud, make_cloud
from tests.catalogs.providers.aws.server import serving

Read = Callable[..., Fetched]

# Service models are read, and the methods of their clients made, once for all tests.
_loader = cache(botocore.loaders.create_loader)


@pytest.fixture(scope="session")
def methods_of() -> Callable[[Any, Any], dict[str, Any]]:
    """The methods of a service's clients, which are made once."""
    create, made = botocore.client.ClientCreator._create_methods, dict[str, dict[str, Any]]()

    def methods(creator: Any, model: Any) -> dict[str, Any]:
        if model.service_name not in made:
            made[model.service_name] = create(creator, model)
        return dict(made[model.service_name])

    return methods


@pytest.fixture
def cloud(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    methods_of: Callable[[Any, Any], dict[str, Any]],
) -> Iterator[Cloud]:
    """An AWS of three regions, at its best."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr("botocore.session.create_loader", _loader)
    monkeypatch.setattr("botocore.client.ClientCreator._create_methods", methods_of)
    with serving(make_cloud()) as served:
        for service in ("EC2", "PRICING", "SERVICE_QUOTAS"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", served.url)
        yield served


@pytest.fixture
def read(cloud: Cloud) -> Read:
    """Reads the local AWS with the real clients."""

    def fetch(**more: Any) -> Fetched:
        return Aws(cloud.places, Patience(tries=3, sleep=lambda seconds: None)).fetch(
            cloud.wanted(**more)
        )

    return fetch


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without credentials."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
