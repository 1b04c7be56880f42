"""Checks the templates: `python -m infra.check`; with --update it first writes the committed results anew.

With a Bicep CLI every template is compiled, every diagnostic is an error, and what each file of infra/snapshots would
deploy is compared with the committed prediction. Without one nothing is compiled; what is then checked, and said, is
that the committed results belong to the sources as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from infra.compiler import Answer, Compiler, NoSuchCompiler, find_compiler

PROJECT = Path(__file__).resolve().parents[1]

#: What the parameter files for operators need; all else has a default.
REQUIRED = {
    "HASTE_WORKER_NAME": "example-worker",
    "HASTE_STORAGE_ACCOUNT": "examplehaste",
    "HASTE_EXISTING_BATCH_ACCOUNT": "examplebatch",
    "HASTE_SHARED_ACR_NAME": "exampleregistry",
    "HASTE_SHARED_UMI_ID": "/subscriptions/example/identity",
    "HASTE_POOL_IDENTITY_ID": "/subscriptions/example/identity",
    "HASTE_TITILER_ENDPOINT": "https://example.invalid/api/titiler/",
}
_NOT_COMPILED = (
    "NOT COMPILED: there is no Bicep CLI (looked at BICEP, PATH and `az bicep install`).\n"
    "Checked only that the committed results were made from these sources."
)
_COMPILED = "infra/shared-pools.json"
_STAMP = "infra/snapshots/made-from.json"


def main(arguments: list[str], project: Path = PROJECT, environment: Mapping[str, str] = os.environ) -> int:
    """Exit code 0 if nothing is wrong."""
    try:
        compiler = find_compiler(environment)
    except NoSuchCompiler as error:
        return _report([str(error)])
    if "--update" in arguments:
        if compiler is None:
            return _report(["--update needs a Bicep CLI"])
        complaints = update(project, compiler)
        if complaints:
            return _report(complaints)
    faults = committed_faults(project)
    if compiler is None:
        return _report([_NOT_COMPILED, *faults], wrong=bool(faults))
    faults += compiler_faults(project, compiler)
    if faults:
        faults.append(f"compiled with {compiler.version()}; the committed results are from {made_with(project)}")
    else:
        counted = f"{len(templates(project))} templates, {len(cases(project))} snapshots"
        sys.stdout.write(f"compiled with Bicep {compiler.version()}: {counted}, no diagnostic, no difference\n")
    return _report(faults)


def templates(project: Path) -> list[Path]:
    """All templates and modules."""
    return sorted((project / "infra").rglob("*.bicep"))


def cases(project: Path) -> list[Path]:
    """The parameter files that have a committed snapshot."""
    return sorted((project / "infra/snapshots").glob("*.bicepparam"))


def snapshot_of(case: Path) -> Path:
    """The committed prediction of a case."""
    return case.with_name(f"{case.stem}.snapshot.json")


def compiler_faults(project: Path, compiler: Compiler) -> list[str]:
    """What the compiler has to say, and where its results differ from the committed ones."""
    operators = sorted((project / "infra").glob("*.bicepparam"))
    linted = compiler.lint(project, "infra/**/*.bicep").complaints
    faults = [linted] if linted else []
    faults += _each(operators, lambda path: compiler.build_parameters(path, REQUIRED))
    faults += _each(cases(project), compiler.validate_snapshot)
    built = compiler.build(project / "infra/shared-pools.bicep")
    if not built.complaints and not _same_template(built.output, (project / _COMPILED).read_text("utf-8")):
        faults.append(f"{_COMPILED}: is not what infra/shared-pools.bicep compiles to; run make infra ARGS=--update")
    return faults


def committed_faults(project: Path) -> list[str]:
    """Where the committed results do not belong to the sources."""
    stamp = json.loads((project / _STAMP).read_text("utf-8"))
    recorded, present = stamp["files"], _hashes(project)
    return [
        f"{path}: changed since the committed results were made; run make infra ARGS=--update"
        for path in sorted(recorded.keys() | present.keys())
        if recorded.get(path) != present.get(path)
    ]


def made_with(project: Path) -> str:
    """Version of the compiler that made the committed results."""
    return str(json.loads((project / _STAMP).read_text("utf-8"))["bicep"])


def update(project: Path, compiler: Compiler) -> list[str]:
    """Write all committed results anew. Returns what the compiler complained about; then they are not to be trusted."""
    complaints = _each(cases(project), compiler.write_snapshot)
    if not complaints:
        for case in cases(project):
            _order_outputs(snapshot_of(case))
    built = compiler.build(project / "infra/shared-pools.bicep")
    if complaints or built.complaints:
        return complaints or [built.complaints]
    (project / _COMPILED).write_text(built.output, "utf-8")
    stamp = {"bicep": compiler.version(), "files": _hashes(project)}
    (project / _STAMP).write_text(json.dumps(stamp, indent=2) + "\n", "utf-8")
    return []


def _order_outputs(snapshot: Path) -> None:
    """The compiler writes outputs in an order of the moment, which would show as a change in reviews."""
    content = json.loads(snapshot.read_text("utf-8"))
    content["outputs"] = dict(sorted(content["outputs"].items()))
    snapshot.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _each(paths: Iterable[Path], ask: Callable[[Path], Answer]) -> list[str]:
    """Ask about every path, two at a time; a diagnostic that several templates share is told once."""
    with ThreadPoolExecutor(2) as pool:
        answers = zip(paths, pool.map(ask, paths), strict=True)
        faults = [f"{path.name}:\n{answer.complaints}" for path, answer in answers if answer.complaints]
    return list(dict.fromkeys(faults))


def _same_template(one: str, other: str) -> bool:
    return bool(_without_generator(json.loads(one)) == _without_generator(json.loads(other)))


def _without_generator(value: Any) -> Any:
    """Without the compiler's version and its hash, which differ between compilers for one and the same template."""
    if isinstance(value, dict):
        return {key: _without_generator(item) for key, item in value.items() if key != "_generator"}
    return [_without_generator(item) for item in value] if isinstance(value, list) else value


def _hashes(project: Path) -> dict[str, str]:
    """Sources and results: path -> hash of its text, whatever its line ends."""
    infra = project / "infra"
    kinds = ("*.bicep", "*.bicepparam", "*.snapshot.json", "shared-pools.json")
    paths = {path for kind in kinds for path in infra.rglob(kind)} | {project / "bicepconfig.json"}
    return {
        path.relative_to(project).as_posix(): hashlib.sha256(path.read_text("utf-8").encode()).hexdigest()
        for path in sorted(paths)
    }


def _report(lines: list[str], *, wrong: bool | None = None) -> int:
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return int(bool(lines) if wrong is None else wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
