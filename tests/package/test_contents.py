"""A publish uploads the app and nothing else, whichever tool does it."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import code
from tests.package.conftest import PROJECT
from tests.package.publishing import by_core_tools, by_gitignore

TOP = {"function_app.py", "host.json", "requirements.txt"}
#: What may lie about in somebody's folder, and must not be uploaded.
LITTER = (
    ".ci/run",
    ".env",
    ".git/config",
    ".github/workflows/ci.yml",
    ".gitignore",
    ".local/demo/run/certificates/key.pem",
    ".venv/lib/python3.11/site-packages/yaml/__init__.py",
    ".venv/lib/python3.11/site-packages/yaml/.hidden",
    ".vscode/settings.json",
    "__pycache__/function_app.cpython-311.pyc",
    "docs/deployment.md",
    "haste-worker.zip",
    "infra/main.bicep",
    "infra/snapshots/.keep",
    "local/azurite/node_modules/azurite/package.json",
    "local/images/training/entrypoint",
    "local.settings.json",
    "local.settings.sample.json",
    "shared/__pycache__/app.cpython-311.pyc",
    "shared/haste/__pycache__/jobs.cpython-311.pyc",
    "shared/haste/old.pyc",
    "tests/.hidden",
    "tests/package/test_contents.py",
)
WANTED = (*sorted(TOP), "shared/__init__.py", "shared/app.py", "shared/haste/deep/er.py", "shared/haste/local.py")
BUILT_HERE = ".python_packages/lib/site-packages/yaml/__init__.py"
WAYS = (by_core_tools, by_gitignore)


def planted(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
    (folder / ".funcignore").write_bytes((PROJECT / ".funcignore").read_bytes())
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_this_project_uploads_the_app_and_nothing_else(way: Callable[[Path], list[str]]) -> None:
    shared = {
        path.relative_to(PROJECT).as_posix()
        for path in (PROJECT / "shared").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert len(shared) > 50
    assert set(way(PROJECT)) == TOP | shared


def test_the_zip_holds_these_files_byte_for_byte(package: Path) -> None:
    with zipfile.ZipFile(package) as files:
        assert sorted(files.namelist()) == sorted(by_core_tools(PROJECT))
        for name in files.namelist():
            assert files.read(name) == (PROJECT / name).read_bytes(), name
    # reported, not asserted
    print(f"the package has {package.stat().st_size / 1024:.0f} KB")  # noqa: T201


@pytest.mark.parametrize("way", WAYS)
def test_litter_stays_at_home(way: Callable[[Path], list[str]], tmp_path: Path) -> None:
    assert set(way(planted(tmp_path, *LITTER, *WANTED))) == set(WANTED)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_local_build_installed_is_uploaded(way: Callable[[Path], list[str]], tmp_path: Path) -> None:
    assert BUILT_HERE in way(planted(tmp_path, BUILT_HERE, *WANTED))


@pytest.mark.parametrize("way", WAYS)
def test_a_new_file_at_the_top_is_noticed(way: Callable[[Path], list[str]], tmp_path: Path) -> None:
    assert "notes.txt" in way(planted(tmp_path, "notes.txt", *WANTED))


def test_core_tools_do_not_read_a_line_as_git_does(tmp_path: Path) -> None:
    folder = planted(tmp_path, "tests/a.py", "shared/tests/b.py", "shared/tests/.c", "testsuite.py")
    (folder / ".funcignore").write_text(".funcignore\ntests/\n")
    assert by_core_tools(folder) == ["testsuite.py", "shared/tests/.c", "shared/tests/b.py"]
    assert by_gitignore(folder) == ["testsuite.py"]
    (folder / ".funcignore").write_text("*\n!shared\n")
    assert by_core_tools(folder) == ["shared/tests/.c", "shared/tests/b.py"]


def test_the_documented_command_makes_the_same_package(tmp_path: Path) -> None:
    (command,) = [piece for piece in code(PROJECT / "docs/deployment.md") if piece.startswith("git archive --")]
    litter = [path for path in LITTER if not path.startswith(".git/")]
    folder = planted(tmp_path / "clone", *litter, *WANTED)
    (folder / ".gitignore").write_bytes((PROJECT / ".gitignore").read_bytes())
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "--message", "t"]):
        subprocess.run(["git", "-c", "init.defaultBranch=main", *words], cwd=folder, check=True)
    subprocess.run(command, shell=True, cwd=folder, check=True)
    planted(folder, BUILT_HERE)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=folder, check=True, capture_output=True)
    assert status.stdout == b"", "what publishing leaves behind is no change to the project"
    (made,) = folder.glob("*.zip")
    with zipfile.ZipFile(made) as files:
        assert {name for name in files.namelist() if not name.endswith("/")} == set(WANTED)
