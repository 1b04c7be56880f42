"""The pages keep to the glossary: "job" alone is a Batch job, and the glossary's words are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.kinds import Kind
from shared.protocol.record import EndReason, State
from tests.docs.pages import PROJECT, name, prose
from tests.docs.settings_table import settings_table
from tests.docs.tables import tables

GLOSSARY = PROJECT / "docs/glossary.md"
MEANINGS = {row[0]: row[1] for row in tables(GLOSSARY)[0].rows}
#: About Azure Batch and nothing else: there every job is one of Batch's.
OF_BATCH = {"docs/batch-emulator.md"}
PAGES = [
    page
    for page in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))]
    if name(page) not in OF_BATCH
]
_JOB = re.compile(r"\bjobs?\b", re.IGNORECASE)
#: Also a role and a quota by Azure's names, and the rule itself.
_ALLOWED = re.compile(
    r"\bBatch jobs?\b|\bjob objects?\b|\bAzure Batch Job Submitter\b|\"active jobs and job schedules\"|\"Job\" alone"
)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_job_is_a_batch_job(page: Path) -> None:
    """Code, links and the table that `shared/settings` makes are not the page's own words."""
    text = prose(page).replace(settings_table(), "")
    text = re.sub(r"`[^`\n]+`|\]\([^)\s]+\)", "", text)
    text = _ALLOWED.sub("", re.sub(r"\s+", " ", text))
    assert [text[max(0, found.start() - 60) : found.end() + 20] for found in _JOB.finditer(text)] == []


def test_the_glossary_has_the_words_of_the_code() -> None:
    assert {*State, EndReason.MOVE} <= MEANINGS.keys()
    assert {word for word, meaning in MEANINGS.items() if meaning.startswith("State of")} == set(State)
    assert set(re.findall(r"`([^`]+)`", MEANINGS["kind"])) == set(Kind)
    assert set(re.findall(r"`([^`]+)`", MEANINGS["class"])) == {kind.job_class for kind in Kind}


def test_each_word_has_one_sentence() -> None:
    assert [word for word, meaning in MEANINGS.items() if not re.fullmatch(r"[^.]+\.", meaning)] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_glossary_is_linked(page: str) -> None:
    assert "(docs/glossary.md)" in (PROJECT / page).read_text(encoding="utf-8")
