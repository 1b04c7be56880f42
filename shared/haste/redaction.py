"""Making text from containers safe to show: no credentials, no paths of a node, one line, not long."""

from __future__ import annotations

import re

LIMIT_CHARACTERS = 400

#: More is not looked at: what a container logs has no limit, and searching takes time.
_LOOKED_AT_CHARACTERS = 4000
_CUT = "…"
#: `key=value` in a query, plain or percent-encoded, and what follows it: SAS parameters and whatever else is there.
_QUERY = re.compile(r"(\?|%3F)[^\s'\"<>?]*?(=|%3D)[^\s'\"<>]*", re.IGNORECASE)
_URL_QUERY = re.compile(r"(\w://[^\s?'\"<>]*)\?[^\s'\"<>]*")
#: A secret outside a query. `sig` is the part of a SAS that makes it valid.
_SECRET = re.compile(
    r"(sig|accountkey|sharedaccess\w*|password|passwd|secret|token|api[_-]?key)(\s*[=:]|%3D)\s*[^\s'\"<>]+",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(r"\b(Bearer|Basic|SharedKey(?:Lite)?)\s+[^\s'\"<>]+", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^\s/@'\"<>]+@")
_FILE_URL = re.compile(r"file:/+", re.IGNORECASE)
#: The folders of an absolute path (not the path of a URL); the last part is worth showing.
_FOLDERS = re.compile(r"(?<![\w.:/~%+-])/+(?=[^\s/])(?:[^\s/'\"<>|,;]+/+)*")
_WINDOWS_FOLDERS = re.compile(r"\b[A-Za-z]:[\\/]+(?:[^\s\\/'\"<>|,;]+[\\/]+)*")


def safe_text(text: str, limit_characters: int = LIMIT_CHARACTERS) -> str:
    """One line without query strings, credentials or folders of absolute paths, cut to the limit."""
    text = text[:_LOOKED_AT_CHARACTERS].encode("utf-8", "replace").decode()  # JSON may smuggle in half a surrogate pair
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    line = _QUERY.sub("", _URL_QUERY.sub(r"\1", line))
    line = _AUTHORIZATION.sub(r"\1 " + _CUT, line)
    line = _SECRET.sub(r"\1" + _CUT, line)
    line = _USER_INFO.sub("", line)
    line = _WINDOWS_FOLDERS.sub("", _FOLDERS.sub("", _FILE_URL.sub(" /", line)))
    line = " ".join(line.split())
    return line if len(line) <= limit_characters else line[: limit_characters - 1] + _CUT
