"""What all list and get operations share: conditions, `$select`, `$filter`, pages."""

import base64
import binascii
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urlencode

from local.batch.errors import BatchError
from local.batch.odata import parse_filter, parse_select, refused
from local.batch.request import Call, Json, Response, json_response
from local.batch.state import Resource

Entry = TypeVar("Entry")


def check_conditions(call: Call, resource: Resource) -> None:
    """412 ConditionNotMet (304 for reads) unless the request's If-... headers fit the resource."""
    headers = call.request.headers
    read = call.request.method in ("GET", "HEAD")
    if_match, if_none_match = headers.get("if-match"), headers.get("if-none-match")
    if if_match and not _names(if_match, resource):
        raise BatchError("ConditionNotMet")
    if if_none_match and _names(if_none_match, resource):
        raise BatchError("NotModified" if read else "ConditionNotMet")
    check_times(call, resource.modified)


def check_times(call: Call, modified: datetime) -> None:
    """The same for If-Modified-Since and If-Unmodified-Since alone; HTTP knows only whole seconds."""
    read = call.request.method in ("GET", "HEAD")
    modified = modified.replace(microsecond=0)
    since, unmodified_since = _date(call, "if-modified-since"), _date(call, "if-unmodified-since")
    if since and modified <= since:
        raise BatchError("NotModified" if read else "ConditionNotMet")
    if unmodified_since and modified > unmodified_since:
        raise BatchError("ConditionNotMet")


def _names(header: str, resource: Resource) -> bool:
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in header.split(",")]
    return "*" in tags or resource.etag in tags


def _date(call: Call, name: str) -> datetime | None:
    value = call.request.headers.get(name)
    if not value:
        return None
    try:
        return parsedate_to_datetime(value)
    except ValueError:
        raise BatchError("InvalidHeaderValue", HeaderName=name) from None


def http_date(moment: datetime) -> str:
    """A time for an HTTP header."""
    return format_datetime(moment.astimezone(UTC).replace(microsecond=0), usegmt=True)


def resource_headers(resource: Resource) -> dict[str, str]:
    """ETag (Batch does not quote it) and Last-Modified."""
    return {"ETag": resource.etag, "Last-Modified": http_date(resource.modified)}


def one(call: Call, kind: str, row: Json, known: Iterable[str], resource: Resource) -> Response:
    """The answer to a get, with `$select` applied."""
    _check_expand(call)
    row = _select(call, row, known)
    body = {"odata.metadata": f"{call.request.base_url}/$metadata#{kind}/@Element"} | row
    return json_response(200, body, resource_headers(resource))


def page(
    call: Call,
    kind: str,
    entries: Iterable[tuple[str, Entry]],
    render: Callable[[Entry], Json],
    filterable: Iterable[str],
    known: Iterable[str],
    page_size: int,
) -> Response:
    """One page of a list. `entries` are (sort key, entry) in order; the skip token is the key of the last one shown."""
    _check_expand(call)
    query = call.request.query
    test = parse_filter(query["$filter"], filterable) if query.get("$filter") else None
    size = min(page_size, _max_results(call))
    after = _skip_token(call)
    rows: list[Json] = []
    last_key = ""
    more = False
    for key, entry in entries:
        if after is not None and key <= after:
            continue
        row = render(entry)
        if test and not test(row):
            continue
        if len(rows) == size:
            more = True
            break
        rows.append(_select(call, row, known))
        last_key = key
    body: Json = {"odata.metadata": f"{call.request.base_url}/$metadata#{kind}", "value": rows}
    if more:
        token = base64.b64encode(last_key.encode()).decode()
        next_query = {name: value for name, value in query.items() if name != "$skiptoken"} | {"$skiptoken": token}
        body["odata.nextLink"] = f"{call.request.base_url}{call.request.raw_path}?{urlencode(next_query, safe='$')}"
    return json_response(200, body)


def _select(call: Call, row: Json, known: Iterable[str]) -> Json:
    select = call.request.query.get("$select")
    if not select:
        return row
    wanted = parse_select(select, known)
    return {name: value for name, value in row.items() if name in wanted}


def _check_expand(call: Call) -> None:
    expand = call.request.query.get("$expand")
    if expand and expand != "stats":
        raise refused("$expand", expand, "only stats can be expanded")


def _max_results(call: Call) -> int:
    value = call.request.query.get("maxresults", "1000")
    if not value.isdecimal() or not 1 <= int(value) <= 1000:
        raise refused("maxresults", value, "allowed are 1 to 1000")
    return int(value)


def _skip_token(call: Call) -> str | None:
    token = call.request.query.get("$skiptoken")
    if not token:
        return None
    try:
        return base64.b64decode(token, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise refused("$skiptoken", token, "it was not made by a list") from None
