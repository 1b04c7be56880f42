"""Queue texts as host.json's `messageEncoding` wants them."""

import base64
import re

_BLANKS = re.compile(r"[ \t\r\n]")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


class UndecodableText(ValueError):
    """The text is not base64."""


def decode_text(text: str, *, base64_encoded: bool) -> bytes:
    """The message's bytes. Blanks and newlines within base64 are skipped, as .NET does. Raises UndecodableText."""
    if not base64_encoded:
        return text.encode()
    compact = _BLANKS.sub("", text)
    if len(compact) % 4 or not _BASE64.fullmatch(compact):
        raise UndecodableText("the text is not base64")
    return base64.b64decode(compact)


def encode_text(body: bytes, *, base64_encoded: bool) -> str:
    """The text to put on a queue. Raises UnicodeDecodeError for bytes that are no UTF-8 without base64."""
    return base64.b64encode(body).decode() if base64_encoded else body.decode()
