"""The rules that the code's structure keeps, as functions from sources to violations ("path: what is wrong")."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

#: Path in the project (with slashes) -> text.
Sources = Mapping[str, str]

_NOT_OURS = {".git", ".venv", ".local", "node_modules", "__pycache__", "local.settings.json"}
_CACHES = re.compile(r"\.\w+_cache|\.hypothesis|\.coverage")

#: Decisions: what and why from frozen values, nothing else.
DECISIONS = (
    "shared/protocol/table.py",
    "shared/protocol/transitions.py",
    "shared/haste/visibility.py",
    "shared/pools/routing.py",
    "shared/pools/recovery.py",
    "shared/settings/lifetimes.py",
    "shared/housekeeping/job_ends.py",
)
_OUTSIDE_WORLD: tuple[str, ...] = (
    "azure",
    "http",
    "logging",
    "os",
    "pathlib",
    "random",
    "requests",
    "secrets",
    "shutil",
    "socket",
    "ssl",
)
_OUTSIDE_WORLD += ("structlog", "subprocess", "tenacity", "threading", "time", "urllib")
_CLOCK_AND_SETTINGS = ("now", "utcnow", "today", "environ", "getenv")

_MOST_LINES = 300
_MOST_STATEMENTS = 5
_SHAPELESS = re.compile(r"(utils?|common|helpers?|misc)(\.py|/)")
#: Fields of HASTE's records that name nothing else.
_HASTE_FIELDS = re.compile(
    r"statusMessage|progressPct|currentStep|totalSteps|preprocessJob|trainingJob|inferenceJobs|inferenceStatus\w*"
    r"|currentInferenceTaskId|labelProjectId|checkpointPath|normalizationMeans|primaryClasses"
)
_HASTE_STATUS_WORDS = frozenset({"Queued", "InProgress", "Processed", "Failed", "Cancelled"})
#: The rooms of shared/, from the ground up.
FLOORS = (
    {"kinds", "errors", "limits", "service_clock"},
    {"telemetry", "retry", "identity", "protocol"},
    {"settings"},
    {"storage"},
    {"batch"},
    {"haste", "ledger"},
    {"memory"},
    {"worker"},
    {"pools"},
    {"requests", "housekeeping"},
    {"triggers"},
    {"app"},
    {"health"},
)
#: Fields of the ledger's record that no other value has: whoever sets one makes a record.
_RECORD_FIELDS = frozenset(
    {
        "state",
        "not_before",
        "placement",
        "node_run",
        "losses",
        "cancel_asked",
        "next",
        "end_reason",
        "ending_since",
        "finishing_since",
        "outcome",
        "reason",
        "waits",
        "stands_aside",
        "end_was_shown",
        "haste_record_gone",
        "zip_asked",
    }
)
#: Hosts of packages, and paths and folders of the machines that the project was written on.
_FOREIGN = re.compile(
    r"pyp[i]\.org|python[h]osted|registry\.npm[j]s|npm[j]s\.org"
    r"|(?<![\w.~*-])/(?:wor[k]|roo[t]|home/\w+|Users/\w+)/\w|(?<![\w.])/tm[p]/\w|\.\./share[d]/"
)


def project_sources(folder: Path) -> dict[str, str]:
    """Every text of the project that can be committed."""
    return {
        path.relative_to(folder).as_posix(): text
        for path in sorted(_files(folder))
        if (text := _text(path)) is not None
    }


def batch_sdk_in_one_module(sources: Sources) -> list[str]:
    """`azure.batch` is imported in one module of shared/batch."""
    found = [path for path in _shipped(sources) if _imports(sources[path], "azure.batch")]
    return [f"{path}: imports azure.batch" for path in found if found[1:] or not path.startswith("shared/batch/")]


def retries_in_one_module(sources: Sources) -> list[str]:
    """`tenacity` is imported in shared/retry.py alone."""
    found = [path for path in _shipped(sources) if _imports(sources[path], "tenacity")]
    return [f"{path}: imports tenacity" for path in found if path != "shared/retry.py"]


def settings_are_read_in_one_place(sources: Sources) -> list[str]:
    """Environment variables are read where the settings are made, and where the app is put together."""
    allowed = {"shared/settings/load.py", "shared/app.py", "shared/health.py"}
    return [
        f"{path}: reads the environment"
        for path in _shipped(sources)
        if path not in allowed and {"environ", "getenv"} & _names(sources[path])
    ]


def what_ships_imports_only_what_ships(sources: Sources) -> list[str]:
    """shared/ and function_app.py never import what stays at home; operate/ imports shared/ only."""
    return [
        f"{path}: imports {package}"
        for path in (*_shipped(sources), *_below(sources, "operate"))
        for package in ("local", "tests", "bench", "operate")
        if _imports(sources[path], package) and not (package == "operate" and path.startswith("operate/"))
    ]


def triggers_only_bind(sources: Sources) -> list[str]:
    """function_app.py: short functions without control flow, no class."""
    wrong = []
    for node in ast.walk(ast.parse(sources["function_app.py"])):
        if isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match, ast.ClassDef)):
            wrong.append(f"function_app.py: line {node.lineno} is logic")
        if isinstance(node, ast.FunctionDef) and len(node.body) > _MOST_STATEMENTS:
            wrong.append(f"function_app.py: {node.name} has {len(node.body)} statements")
    return wrong


def modules_have_a_name_and_a_size(sources: Sources) -> list[str]:
    """No module without a subject; none, lists of tests apart, that is too long to read."""
    modules = [path for path in sources if path.endswith(".py")]
    wrong = [f"{path}: the name says nothing" for path in modules if _SHAPELESS.search(path)]
    for path in modules:
        lines = sources[path].count("\n")
        if lines > _MOST_LINES and not path.startswith("tests/"):
            wrong.append(f"{path}: has {lines} lines, at most {_MOST_LINES} are readable")
    return wrong


def decisions_are_pure(sources: Sources) -> list[str]:
    """No decision, and nothing that it imports, reaches the outside world; none reads a clock or a setting."""
    wrong = []
    for decision in DECISIONS:
        for path in _reach(sources, decision):
            found = sorted(module for module in _OUTSIDE_WORLD if _imports(sources[path], module))
            wrong += [f"{decision}: {path} imports {module}" for module in found]
        used = sorted(_names(sources[decision]) & set(_CLOCK_AND_SETTINGS) - _parameters(sources[decision]))
        wrong += [f"{decision}: uses {name}" for name in used]
    return wrong


def haste_shapes_stay_in_one_package(sources: Sources) -> list[str]:
    """Names of HASTE's record fields, and its status words, are written in shared/haste/ alone."""
    return [
        f"{path}: knows HASTE's {text}"
        for path in _shipped(sources)
        if not path.startswith("shared/haste/")
        for text in sorted(_texts(sources[path]))
        if _HASTE_FIELDS.fullmatch(text) or text in _HASTE_STATUS_WORDS
    ]


def records_are_made_in_one_place(sources: Sources) -> list[str]:
    """shared/protocol/ alone makes the next record: elsewhere none is built, and no field of one is replaced."""
    return [
        f"{path}: line {node.lineno} makes a record"
        for path in _shipped(sources)
        if not path.startswith("shared/protocol/")
        for node in ast.walk(ast.parse(sources[path]))
        if isinstance(node, ast.Call) and _makes_a_record(node)
    ]


def _makes_a_record(call: ast.Call) -> bool:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    fields = {keyword.arg for keyword in call.keywords}
    return called == "Record" or (called == "replace" and bool(fields & _RECORD_FIELDS))


def rooms_import_downwards_only(sources: Sources) -> list[str]:
    """A folder or root module of shared/ imports from lower floors and from itself, and each has a floor."""
    floors = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    found = []
    for path in sorted(path for path in sources if path.startswith("shared/") and path.endswith(".py")):
        room = _room(path.removesuffix(".py").split("/"))
        if room is None:
            continue
        if room not in floors:
            found.append(f"{path}: {room} has no floor")
            continue
        for module in sorted(_shared_imports(sources[path])):
            other = _room(module.split("."))
            if other is not None and other != room and floors.get(other, len(FLOORS)) >= floors[room]:
                found.append(f"{path}: {room} imports {other}, which is not below it")
    return found


def _room(parts: list[str]) -> str | None:
    """The folder below shared/, or the module at its root."""
    return parts[1] if len(parts) > 1 and parts[1] != "__init__" else None


def _shared_imports(source: str) -> set[str]:
    """Modules of shared/ that are imported, also as names of the package itself."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            is_root = node.module == "shared"
            found.update(f"shared.{alias.name}" for alias in node.names) if is_root else found.add(node.module)
    return {module for module in found if module.split(".")[0] == "shared"}


def nothing_foreign_is_named(sources: Sources) -> list[str]:
    """No file names a package host, or a path of somebody's machine."""
    return [
        f"{path}: line {number} names {found.group()}"
        for path, text in sources.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (found := _FOREIGN.search(line))
    ]


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in _NOT_OURS or _CACHES.fullmatch(path.name):
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def _below(sources: Sources, folder: str) -> list[str]:
    return [path for path in sources if path.startswith(f"{folder}/") and path.endswith(".py")]


def _shipped(sources: Sources) -> list[str]:
    return [*(path for path in ("function_app.py",) if path in sources), *_below(sources, "shared")]


def _imported(text: str) -> set[str]:
    """Every dotted name that is imported; for `from a import b` both `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def _imports(text: str, module: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for name in _imported(text))


def _reach(sources: Sources, start: str) -> set[str]:
    """`start` and every module of the project that it imports, however far away."""
    reached: set[str] = set()
    todo = [start]
    while todo:
        path = todo.pop()
        if path not in reached:
            reached.add(path)
            paths = (f"{name.replace('.', '/')}.py" for name in _imported(sources[path]))
            todo += [imported for imported in paths if imported in sources]
    return reached


def _names(text: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _parameters(text: str) -> set[str]:
    """Names of parameters: a clock that is handed over is no clock that is read."""
    return {node.arg for node in ast.walk(ast.parse(text)) if isinstance(node, ast.arg)}


def _texts(text: str) -> set[str]:
    nodes = ast.walk(ast.parse(text))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
