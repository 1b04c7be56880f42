"""Route templates of HTTP triggers."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

_PARAMETER = re.compile(r"\{(?P<all>\*{0,2})(?P<name>\w+)(?::(?P<kind>\w+))?(?P<optional>\?)?\}")
_KINDS = {
    "int": r"-?[0-9]+",
    "long": r"-?[0-9]+",
    "bool": r"(?i:true|false)",
    "guid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "alpha": r"[A-Za-z]+",
}


class RouteError(ValueError):
    """A route template this host does not know."""


@dataclass(frozen=True)
class HttpRoute:
    """A route below the prefix, such as `jobs/{id:int}/{part?}` or `files/{*path}`."""

    template: str
    pattern: re.Pattern[str]

    def match(self, path: str) -> dict[str, str] | None:
        """The route's parameters in a still quoted path without the prefix, or None when it does not match."""
        found = self.pattern.fullmatch(path.strip("/"))
        if found is None:
            return None
        return {name: unquote(value) for name, value in found.groupdict().items() if value is not None}


def parse_route(template: str) -> HttpRoute:
    """Read a template with `{name}`, `{name?}`, `{name:kind}` and `{*rest}` segments. Raises RouteError."""
    template = template.strip("/")
    pattern = ""
    for segment in template.split("/"):
        slash = "/" if pattern else ""
        parameter = _PARAMETER.fullmatch(segment)
        if parameter is None:
            if "{" in segment or "}" in segment:
                raise RouteError(f"the route {template!r} has a segment this host does not know: {segment!r}")
            pattern += slash + re.escape(segment)
            continue
        kind = parameter["kind"]
        if kind is not None and kind not in _KINDS:
            raise RouteError(f"the route {template!r} has a constraint this host does not know: {kind!r}")
        value = ".*" if parameter["all"] else _KINDS[kind] if kind else "[^/]+"
        group = f"{slash}(?P<{parameter['name']}>{value})"
        pattern += f"(?:{group})?" if parameter["optional"] or parameter["all"] else group
    return HttpRoute(template, re.compile(pattern, re.IGNORECASE))
