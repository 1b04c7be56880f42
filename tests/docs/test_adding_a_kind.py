"""docs/adding-a-kind.md names the files that one who adds a kind writes in, five at most, and what is written there."""

from __future__ import annotations

import re

from tests.architecture.test_kinds import NAMING, OF_A_KIND
from tests.docs.pages import PROJECT

PAGE = (PROJECT / "docs/adding-a-kind.md").read_text(encoding="utf-8")
STEPS = dict(re.findall(r"^## \d\. `(\S+)`\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL))


def test_the_steps_are_the_files_that_a_kind_is_named_in() -> None:
    assert len(STEPS) <= 5
    assert {path for path, _, _ in OF_A_KIND} | {"function_app.py", "shared/haste/<kind>.py"} == set(STEPS)
    assert all(NAMING.fullmatch(path.replace("<kind>", "zip")) for path in STEPS)


def test_each_place_that_must_know_the_kind_is_named() -> None:
    for path, function, _ in OF_A_KIND:
        assert re.search(rf"`(\w+\.)?{function}`", STEPS[path]), f"{path}: {function}"
