"""Who may ask: SharedKey signatures are verified, any bearer token is accepted."""

import base64
import hashlib
import hmac
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from local.batch.config import Account
from local.batch.errors import BatchError
from local.batch.request import Request

_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_SKEW = timedelta(minutes=15)


def check(request: Request, account: Account, now: datetime, check_date_skew: bool) -> None:
    """401 without credentials, 403 AuthenticationFailed with wrong ones."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme == "Bearer" and value:
        return
    if scheme != "SharedKey":
        raise BatchError("MissingAuthentication" if not scheme else "AuthenticationFailed")
    if not hmac.compare_digest(value.encode(), f"{account.name}:{signature(request, account)}".encode()):
        raise BatchError("AuthenticationFailed", "The signature does not match the request and the account's key.")
    if check_date_skew and abs(now - _date(request)) > _SKEW:
        raise BatchError("AuthenticationFailed", "The request's date is more than 15 minutes off.")


def signature(request: Request, account: Account) -> str:
    """The SharedKey signature of a request: HMAC-SHA256 of its verb, headers, path as sent and query."""
    headers = dict(request.headers)
    length = headers.get("content-length", "")
    if request.method in ("GET", "HEAD"):
        length = "" if length == "0" else length
    headers["content-length"] = length or ("" if request.method in ("GET", "HEAD") else "0")
    lines = [request.method, *(headers.get(name, "") for name in _SIGNED_HEADERS)]
    lines += [f"{name}:{value}" for name, value in sorted(headers.items()) if name.startswith("ocp-") and value]
    lines.append(f"/{account.name}{request.raw_path}")
    lines += [f"{name}:{value}" for name, value in sorted(request.query.items()) if value]
    digest = hmac.new(base64.b64decode(account.key), "\n".join(lines).encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def _date(request: Request) -> datetime:
    try:
        return parsedate_to_datetime(request.headers.get("ocp-date") or request.headers.get("date") or "")
    except ValueError:
        raise BatchError("AuthenticationFailed", "The request has no date.") from None
