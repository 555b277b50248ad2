"""Removes secrets from text that others wrote: error messages, warnings, names.

Clients keep credentials out of their messages; this is a second line of defence.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping

_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY", re.I)
_SHORTEST = 8  # characters; a shorter value is no secret and would blank ordinary words
# Query parameters and headers that carry credentials, and key ids of AWS and Google.
_PATTERNS = (
    re.compile(
        r"(?i)([?&](?:key|api_?key|access_?token|token|sig|signature|x-amz-[a-z-]+)=)[^&\s]+"
    ),
    re.compile(r"(?i)((?:authorization|x-goog-api-key|x-amz-security-token)\W{1,4})[^\s,;]+.*"),
    re.compile(r"()\b(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    re.compile(r"()\bAIza[\w-]{20,}"),
    re.compile(r"(//)[^/@\s]+(?=@)"),
)
_GONE = "[hidden]"


def redacted(text: str) -> str:
    """The text without the values of secret environment variables, keys and tokens."""
    return hider()(text)


def hider(env: Mapping[str, str] = os.environ) -> Callable[[str], str]:
    """A function that removes secrets from many texts, using the current environment."""
    secrets = sorted(_secrets(env), key=len, reverse=True)
    values = re.compile("|".join(map(re.escape, secrets))) if secrets else None

    def hide(text: str) -> str:
        text = values.sub(_GONE, text) if values else text
        for pattern in _PATTERNS:
            text = pattern.sub(rf"\g<1>{_GONE}", text)
        return text

    return hide


def _secrets(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        # A secret key of AWS may begin with a slash as well: the name tells, not the value.
        is_path = name.upper().endswith(("_FILE", "_CREDENTIALS", "_DIRECTORY", "_PATH"))
        is_path &= value.startswith(("/", "~", "."))
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST and not is_path:
            yield value
