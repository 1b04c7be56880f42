"""docs/networking.md explains refusals in the words that the worker uses."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from azure.core.exceptions import HttpResponseError

from shared.errors import WorkerError
from shared.storage import failures
from tests.docs.pages import PROJECT

PAGE = (PROJECT / "docs/networking.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| [\w ]+ \| (.+) \|$", PAGE.partition("### Said by a task")[0], re.MULTILINE)


def _said(code: str) -> str:
    """What the worker makes of a 403 with this code."""
    refusal = HttpResponseError("refused")
    refusal.status_code = 403
    refusal.error_code = SimpleNamespace(value=code)  # type: ignore[attr-defined]
    with pytest.raises(WorkerError) as told, failures.told("look"):
        raise refusal
    return str(told.value).partition(f"{code}: ")[2]


@pytest.mark.parametrize(("code", "text"), ROWS)
def test_a_code_is_explained_as_the_worker_does(code: str, text: str) -> None:
    assert _said(code) == text


def test_every_code_that_the_worker_knows_is_there() -> None:
    anything_else = _said("NobodyKnowsThis")
    source = (PROJECT / "shared/storage/failures.py").read_text(encoding="utf-8")
    known = {code for code in re.findall(r'"([A-Z]\w+)"', source) if _said(code) not in ("", anything_else)}
    assert len(known) > 3
    assert {code for code, _text in ROWS} == known
    assert f"| any other 401 or 403 | either | {anything_else} |" in PAGE


@pytest.mark.parametrize("role", [failures.DATA_ROLE, failures.DELEGATOR_ROLE, failures.QUEUE_ROLE])
def test_every_role_is_named(role: str) -> None:
    assert role in PAGE
