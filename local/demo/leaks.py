"""Finds secrets in texts: known values, and whatever looks like a key, a signature or a token."""

from __future__ import annotations

import re
from collections.abc import Iterable

from local.demo.evidence import Secret, Text

_PATTERNS = {
    "a shared access signature": re.compile(r"\bsig=(?!REDACTED|\*+|%2A)[^\s&\"']", re.IGNORECASE),
    "an account key": re.compile(r"\b(?:AccountKey|SharedAccessKey)=(?!REDACTED|\*+)[^\s;\"']", re.IGNORECASE),
    "a shared key header": re.compile(r"\bSharedKey(?:Lite)? [a-z0-9]+:[A-Za-z0-9+/=]{20}"),
    "a bearer token": re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
}


def leaks(texts: Iterable[Text], secrets: Iterable[Secret]) -> list[str]:
    """What was found and where, once per text and kind of secret; the secret itself is not in it."""
    known = list(secrets)
    found = []
    for text in texts:
        names = [secret.name for secret in known if secret.value in text.content]
        names += [name for name, pattern in _PATTERNS.items() if pattern.search(text.content)]
        found += [f"{name} in {text.source}" for name in names]
    return found
