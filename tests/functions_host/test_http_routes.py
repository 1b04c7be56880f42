"""Route templates match paths as the real host's do."""

import pytest

from local.functions_host.http_routes import RouteError, parse_route


@pytest.mark.parametrize(
    ("template", "path", "expected"),
    [
        ("jobs", "jobs", {}),
        ("jobs", "Jobs/", {}),
        ("jobs", "jobs/1", None),
        ("jobs/{id}", "jobs/a%20b", {"id": "a b"}),
        ("jobs/{id}", "jobs", None),
        ("jobs/{id?}", "jobs", {}),
        ("jobs/{id:int}", "jobs/17", {"id": "17"}),
        ("jobs/{id:int}", "jobs/x", None),
        ("jobs/{id:int?}/log", "jobs/log", {}),
        ("files/{*path}", "files/a/b.tif", {"path": "a/b.tif"}),
        ("files/{*path}", "files", {}),
        ("a.b", "axb", None),
    ],
)
def test_matches(template: str, path: str, expected: dict[str, str] | None) -> None:
    assert parse_route(template).match(path) == expected


@pytest.mark.parametrize("template", ["jobs/{id:colour}", "jobs/{id", "jobs/x{id}"])
def test_unknown_templates_are_refused(template: str) -> None:
    with pytest.raises(RouteError):
        parse_route(template)
