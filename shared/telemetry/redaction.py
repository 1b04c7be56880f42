"""Takes credentials out of texts and values: SAS, account keys, tokens. Pure, and safe to apply twice.

What looks like a credential is taken for one. A log line that lost a harmless word is cheaper than a key in a log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

MARK = "[redacted]"

_DEEPEST = 12

# Texts of a megabyte stay cheap: no repetition runs over a place where its own pattern could start again.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # the query of any URL; a SAS is one
    (re.compile(r"""(://(?:(?!://)[^\s?#"'<>])*+)\?[^\s"'<>]+"""), rf"\1?{MARK}"),
    # parts of connection strings
    (
        re.compile(
            r"""(account[_-]?key|shared[_-]?access[_-]?(?:key|signature))(\\*["']?\s?[=:]\s?\\*["']?)[^;\s"'<>]+""",
            re.IGNORECASE,
        ),
        rf"\1\2{MARK}",
    ),
    # a signature outside of a URL, also percent-encoded or in a dictionary that was printed (and printed again)
    (re.compile(r"""(sig(?:nature)?\\*["']?\s?(?:=|%3D|:)\s?\\*["']?)[\w%+/=.~-]+""", re.IGNORECASE), rf"\1{MARK}"),
    # authorization headers
    (re.compile(r"""(bearer|sharedkey(?:lite)?)(\s+)[^\s"',;<>]+""", re.IGNORECASE), rf"\1\2{MARK}"),
    # JSON web tokens
    (re.compile(r"eyJ(?:(?!eyJ)[\w-]){4,}+\.[\w-]+(?:\.[\w-]*)?"), MARK),
    # bare keys and signatures: 32 bytes or more in base64 with its padding
    (re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{42,}+={1,2}"), MARK),
)

_SECRET_KEYS = frozenset(
    {
        "accesstoken",
        "accountkey",
        "authorization",
        "connectionstring",
        "password",
        "secret",
        "sharedaccesskey",
        "sharedaccesssignature",
        "sig",
        "signature",
        "token",
    }
)


def redact(text: str) -> str:
    """The text without SAS, account keys and tokens."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def redact_value(value: Any, depth: int = 0) -> Any:
    """The value as JSON can hold it, with every text in it redacted, keys too.

    What a key such as `authorization` or `sig` names is replaced as a whole. What is not JSON becomes its text.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return redact(bytes(value).decode("utf-8", "replace"))
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {redact(str(key)): _named(str(key), one, depth) for key, one in value.items()}
    if depth < _DEEPEST and isinstance(value, list | tuple | AbstractSet):
        return [redact_value(one, depth + 1) for one in value]
    return redact(str(value))


def _named(key: str, value: Any, depth: int) -> Any:
    secret = re.sub(r"[^a-z]", "", key.lower()) in _SECRET_KEYS
    return MARK if secret and value is not None else redact_value(value, depth + 1)
