"""The Bicep compiler: where it is found, and what is asked of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Where snapshots pretend to deploy to.
_SCOPE = (
    *("--subscription-id", "00000000-0000-0000-0000-000000000001"),
    *("--resource-group", "example-rg"),
    *("--location", "westus2"),
)
_TIMEOUT_SECONDS = 120


class NoSuchCompiler(Exception):
    """What was taken for a compiler cannot be run."""


@dataclass(frozen=True)
class Answer:
    """What the compiler printed. `complaints` is empty if it found nothing at all to say."""

    output: str
    complaints: str


@dataclass(frozen=True)
class Compiler:
    """A Bicep CLI. Every diagnostic counts, warnings too, whatever the exit code."""

    program: str

    def version(self) -> str:
        """Such as `0.49.2`; raises NoSuchCompiler if the program does not run."""
        try:
            answer = self._run("--version")
        except (OSError, subprocess.SubprocessError) as error:
            raise NoSuchCompiler(f"{self.program} cannot be run: {error}") from error
        number = next((word for word in answer.output.split() if word[:1].isdigit()), None)
        if number is None:
            raise NoSuchCompiler(f"{self.program} cannot be run: it tells no version; {answer.complaints}")
        return number

    def lint(self, project: Path, pattern: str) -> Answer:
        """Diagnostics of the templates whose paths in `project` match, and of their modules."""
        return self._run("lint", "--pattern", pattern, folder=project)

    def build(self, template: Path) -> Answer:
        """The template as ARM's JSON."""
        return self._run("build", str(template), "--stdout")

    def build_parameters(self, parameters: Path, environment: Mapping[str, str]) -> Answer:
        """A parameter file with its values from `environment`, and nothing else of HASTE's from this process."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HASTE_")}
        return self._run("build-params", str(parameters), "--stdout", environment=kept | dict(environment))

    def write_snapshot(self, parameters: Path) -> Answer:
        """Predict what would be deployed, into `<parameters>.snapshot.json` beside the file."""
        return self._run("snapshot", str(parameters), "--mode", "overwrite", *_SCOPE)

    def validate_snapshot(self, parameters: Path) -> Answer:
        """Compare what would be deployed with the committed prediction."""
        return self._run("snapshot", str(parameters), "--mode", "validate", *_SCOPE)

    def _run(self, *arguments: str, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Answer:
        done = subprocess.run(
            [self.program, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_TIMEOUT_SECONDS,
            check=False,
            cwd=folder,
            env=None if environment is None else dict(environment),
        )
        complaints = done.stderr.strip()
        if done.returncode and not complaints:
            complaints = done.stdout.strip() or f"exit code {done.returncode}"
        return Answer(done.stdout, complaints)


def find_compiler(environment: Mapping[str, str]) -> Compiler | None:
    """The one that BICEP names, else `bicep` on PATH, else that of `az bicep install`, else none.

    Raises NoSuchCompiler if what is found does not run: that is a mistake, not an absence.
    """
    azure = environment.get("AZURE_CONFIG_DIR") or Path(environment.get("HOME", "~")).expanduser() / ".azure"
    of_azure_cli = Path(azure) / "bin/bicep"
    program = (
        environment.get("BICEP", "").strip()
        or shutil.which("bicep", path=environment.get("PATH", ""))
        or (str(of_azure_cli) if os.access(of_azure_cli, os.X_OK) else "")
    )
    if not program:
        return None
    compiler = Compiler(str(Path(program).absolute()) if os.sep in program else program)
    compiler.version()
    return compiler
