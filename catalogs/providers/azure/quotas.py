"""The quotas of an Azure subscription by region, for `recommend catalog quotas`.

Credentials, in the order of Azure's own chain: a service principal with a secret
(`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`), a workload identity
(`AZURE_FEDERATED_TOKEN_FILE` instead of the secret), else the user signed in with `az login`.
Prices need none of them. The role Reader of the subscription is enough.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Failed, QuotaValue, Wanted
from recommender.catalogs.providers.http import Patience, Web
from recommender.catalogs.providers.quotas import QuotasRead, folded, value_of
from recommender.catalogs.schema import Quota

_MANAGEMENT = "https://management.azure.com"
_VERSION = "2024-07-01"
_AZ_S = 60.0
_SIGN_IN = (
    "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE, "
    "or sign in with `az login`"
)


def az_token() -> str:
    """A token of the user signed in with `az login`; empty without one."""
    program = shutil.which("az")
    if program is None:
        return ""
    words = [program, "account", "get-access-token", "--resource", _MANAGEMENT, "--output", "json"]
    try:
        done = subprocess.run(words, capture_output=True, timeout=_AZ_S, check=True)
        return str(json.loads(done.stdout)["accessToken"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return ""


@dataclass(frozen=True, slots=True)
class Account:
    """The account whose quotas are read, and its credentials."""

    subscription: str = ""
    tenant: str = ""
    client: str = ""
    secret: str = field(default="", repr=False)
    token_file: str = ""
    login: str = "https://login.microsoftonline.com"
    management: str = _MANAGEMENT
    signed_in: Callable[[], str] = az_token


def account_from(env: Mapping[str, str] = os.environ) -> Account:
    """Read the account from the environment, as Azure's own libraries do."""
    return Account(
        subscription=env.get("AZURE_SUBSCRIPTION_ID", "").strip(),
        tenant=env.get("AZURE_TENANT_ID", "").strip(),
        client=env.get("AZURE_CLIENT_ID", "").strip(),
        secret=env.get("AZURE_CLIENT_SECRET", "").strip(),
        token_file=env.get("AZURE_FEDERATED_TOKEN_FILE", ""),
    )


def read_quotas(
    account: Account,
    wanted: Wanted,
    patience: Patience,
    quotas: Iterable[Quota],
    regions: Iterable[str],
) -> QuotasRead:
    """Read the quotas of some regions.

    Raises:
        ProviderError: no subscription, no signed-in user, or no region that can be read.
    """
    if not account.subscription:
        reason = "set AZURE_SUBSCRIPTION_ID to the subscription to read"
        raise ProviderError("azure", "credentials", reason)
    token = _token(account, wanted, patience)
    known: dict[tuple[str, str], Quota] = {}
    for each in quotas:
        if each.provider == "azure":
            known.setdefault((folded(each.name), each.market), each)
    values: list[QuotaValue] = []
    failed: list[Failed] = []
    with Web("azure", wanted, {"Authorization": f"Bearer {token}"}, patience) as web:
        for region in regions:
            try:
                values += _values(region, _usages(web, account, region), known)
            except ProviderError as error:
                if error.fault in ("credentials", "timeout"):
                    raise
                failed.append(Failed(region, "", error.reason))
    if not values:
        reason = failed[0].reason if failed else "no quota of a machine is listed"
        raise ProviderError("azure", "server", reason)
    found = {value.family for value in values}
    missing = sorted({q.name for q in known.values()} - found)
    warnings = tuple(f"no value of the quota {name!r} in any region" for name in missing)
    return QuotasRead(tuple(values), tuple(failed), warnings)


def _token(account: Account, wanted: Wanted, patience: Patience) -> str:
    proof = _proof(account)
    if not proof:
        token = account.signed_in()
        if not token:
            raise ProviderError("azure", "credentials", f"no credentials were found; {_SIGN_IN}")
        return token
    form = {
        **proof,
        "grant_type": "client_credentials",
        "client_id": account.client,
        "scope": f"{_MANAGEMENT}/.default",
    }
    address = f"{account.login}/{quote(account.tenant, safe='')}/oauth2/v2.0/token"
    with Web("azure", wanted, patience=patience) as web:
        try:
            return str(web.json(address, form=form)["access_token"])
        except (KeyError, TypeError):
            raise ProviderError("azure", "format", "the answer holds no token") from None
        except ProviderError as error:
            if error.fault != "server":
                raise
            reason = f"the service principal was refused ({error.reason}); {_SIGN_IN}"
            raise ProviderError("azure", "credentials", reason) from None


def _proof(account: Account) -> dict[str, str]:
    """What proves to be the service principal; empty without one."""
    if not (account.tenant and account.client):
        return {}
    if account.secret:
        return {"client_secret": account.secret}
    if not account.token_file:
        return {}
    try:
        assertion = Path(account.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        reason = "the file named by AZURE_FEDERATED_TOKEN_FILE cannot be read"
        raise ProviderError("azure", "credentials", reason) from None
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    return {"client_assertion": assertion, "client_assertion_type": kind}


def _usages(web: Web, account: Account, region: str) -> Iterator[Mapping[str, Any]]:
    path = f"subscriptions/{quote(account.subscription, safe='')}/providers/Microsoft.Compute"
    address = f"{account.management}/{path}/locations/{quote(region)}/usages?api-version={_VERSION}"
    for page in web.pages(address, "value", "nextLink"):
        if not isinstance(page.get("value"), list):
            raise ProviderError("azure", "format", "the quotas have no known form")
        yield from page["value"]


def _values(
    region: str, rows: Iterable[Mapping[str, Any]], known: Mapping[tuple[str, str], Quota]
) -> Iterator[QuotaValue]:
    try:
        for row in rows:
            name, amount = folded(str(row["name"]["localizedValue"])), float(row["limit"])
            for market in ("on_demand", "spot"):
                quota = known.get((name, market))
                if quota is not None and isfinite(amount) and amount >= 0:
                    yield value_of(quota, region, amount)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"a quota has no known form ({type(error).__name__})"
        raise ProviderError("azure", "format", reason) from error
