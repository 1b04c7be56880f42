"""`make infra`, with compilers that are told what to say, and without one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from infra import check
from infra.compiler import NoSuchCompiler, find_compiler
from tests.infra.snapshots import PROJECT

#: A compiler that finds nothing to say, and prints what is committed when it is asked to build.
CONTENT = """#!/bin/sh
case "$1" in
    --version) echo "Bicep CLI version 9.9.9 (made up)" ;;
    build) cat "${2%.bicep}.json" ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(PROJECT / "infra", tmp_path / "infra", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copy(PROJECT / "bicepconfig.json", tmp_path)
    return tmp_path


def _program(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, "utf-8")
    path.chmod(0o755)
    return str(path)


def _nowhere(project: Path) -> dict[str, str]:
    return {"PATH": str(project / "no-programs"), "HOME": str(project / "nobody")}


def test_the_committed_results_belong_to_the_sources() -> None:
    assert check.committed_faults(PROJECT) == []
    assert {check.snapshot_of(case).is_file() for case in check.cases(PROJECT)} == {True}


def test_without_a_compiler_it_says_that_nothing_was_compiled(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main([], project, _nowhere(project)) == 0
    said = capsys.readouterr()
    assert said.err.startswith("NOT COMPILED")
    assert said.out == ""


@pytest.mark.parametrize(
    "path",
    [
        "infra/modules/batchPool.bicep",
        "infra/main.bicepparam",
        "infra/shared-pools.json",
        "infra/snapshots/pools-fixed-spot.snapshot.json",
        "infra/snapshots/main-shared.bicepparam",
        "bicepconfig.json",
    ],
)
def test_without_a_compiler_a_change_by_hand_is_a_fault(
    project: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / path).write_text((project / path).read_text("utf-8") + "\n", "utf-8")
    assert check.main([], project, _nowhere(project)) == 1
    assert f"{path}: changed since" in capsys.readouterr().err


def test_without_a_compiler_a_lost_or_new_file_is_a_fault(project: Path) -> None:
    (project / "infra/snapshots/pools-fixed-spot.snapshot.json").unlink()
    (project / "infra/modules/new.bicep").write_text("", "utf-8")
    assert [fault.partition(":")[0] for fault in check.committed_faults(project)] == [
        "infra/modules/new.bicep",
        "infra/snapshots/pools-fixed-spot.snapshot.json",
    ]


def test_without_a_compiler_nothing_is_updated(project: Path) -> None:
    assert check.main(["--update"], project, _nowhere(project)) == 1


def test_a_compiler_that_is_content(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"BICEP": _program(project / "content", CONTENT)}
    assert check.main([], project, environment) == 0
    said = capsys.readouterr()
    assert said.out.startswith("compiled with Bicep 9.9.9")
    assert said.err == ""


@pytest.mark.parametrize(
    ("command", "does"),
    [
        ("lint", "echo 'main.bicep(1,1) : Warning BCP081: ...' >&2"),
        ("build-params", "echo 'Error BCP033: ...' >&2; exit 1"),
        ("snapshot", "echo 'it differs'; exit 1"),
        ("snapshot", "exit 1"),
    ],
)
def test_whatever_a_compiler_says_is_an_error(
    project: Path, command: str, does: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Warnings too, for which the compiler ends with 0."""
    script = CONTENT.replace("esac", f"    {command}) {does} ;;\nesac")
    assert check.main([], project, {"BICEP": _program(project / "strict", script)}) == 1
    said = capsys.readouterr()
    assert "no difference" not in said.out
    assert "compiled with 9.9.9; the committed results are from" in said.err


def test_outputs_are_committed_in_one_order(project: Path) -> None:
    """The compiler writes them in another order each time."""
    written = '{"predictedResources": [], "outputs": {"b": 1, "a": {"d": "\\u00fc", "c": 2}}}'
    script = CONTENT.replace(
        "esac", f"    snapshot) printf '%s' '{written}' > \"${{2%.bicepparam}}.snapshot.json\" ;;\nesac"
    )
    compiler = find_compiler({"BICEP": _program(project / "other", script)})
    assert compiler
    assert check.update(project, compiler) == []
    text = (project / "infra/snapshots/main-shared.snapshot.json").read_text("utf-8")
    assert list(json.loads(text)["outputs"]) == ["a", "b"]


def test_another_compilers_stamp_on_the_template_is_no_difference(project: Path) -> None:
    committed = json.loads((project / "infra/shared-pools.json").read_text("utf-8"))
    committed["metadata"]["_generator"] = {"name": "bicep", "version": "9.9.9", "templateHash": "1"}
    built = project / "built.json"
    script = CONTENT.replace('"${2%.bicep}.json"', f'"{built}"')
    compiler = find_compiler({"BICEP": _program(project / "other", script)})
    assert compiler
    built.write_text(json.dumps(committed), "utf-8")
    assert check.compiler_faults(project, compiler) == []
    committed["parameters"]["sharedNodeType"]["defaultValue"] = "Dedicated"
    built.write_text(json.dumps(committed), "utf-8")
    (fault,) = check.compiler_faults(project, compiler)
    assert fault.startswith("infra/shared-pools.json: is not what")


def test_the_compiler_is_looked_for_in_this_order(tmp_path: Path) -> None:
    named = _program(tmp_path / "named", CONTENT)
    on_path = _program(tmp_path / "bin/bicep", CONTENT)
    of_azure_cli = _program(tmp_path / "home/.azure/bin/bicep", CONTENT)
    environment = {"BICEP": named, "PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}
    found = []
    for gone in ("BICEP", "PATH", "HOME", None):
        compiler = find_compiler(environment)
        found.append(compiler.program if compiler else None)
        if gone:
            environment = {**environment, gone: str(tmp_path / "nothing") if gone != "BICEP" else ""}
    assert found == [named, on_path, of_azure_cli, None]


@pytest.mark.parametrize("script", [None, "#!/bin/sh\nexit 1\n", "no program"])
def test_a_compiler_that_does_not_run_is_a_mistake(
    tmp_path: Path, script: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    program = _program(tmp_path / "broken", script) if script else str(tmp_path / "absent")
    with pytest.raises(NoSuchCompiler, match="cannot be run"):
        find_compiler({"BICEP": program})
    assert check.main([], tmp_path, {"BICEP": program}) == 1
    assert "NOT COMPILED" not in capsys.readouterr().err
