"""Changes shared/ in small ways, one at a time, and tells which changes no unit test notices.

Not collected and not part of the checks of a change: `python -m tests.mutants --seed 7`.
"""

from __future__ import annotations

import argparse
import queue
import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.covering import KEPT, PROJECT, Coverage, chosen, copied, record
from tests.mutants.judging import is_killed
from tests.mutants.mutating import Mutant, mutants

_MOST_SECONDS = 30 * 60
#: What the tests of one mutant may take by the record, and what they may really take.
_TESTS_SECONDS, _MUTANT_SECONDS = 30.0, 150.0
_GOAL = 0.9


def _picked(
    seed: int, number: int, only: str, sources: dict[str, str], covered: Coverage
) -> list[tuple[Mutant, set[str]]]:
    """Mutants with their tests. Places that no unit test runs are passed over, and counted."""
    chance = random.Random(seed)
    places: defaultdict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for path, source in sources.items():
        if path.startswith(only):
            for one in mutants(path, source):
                places[path, one.begin].append(one)
    order = sorted(places)
    chance.shuffle(order)
    picked: list[tuple[Mutant, set[str]]] = []
    passed_over = 0
    for place in order:
        if len(picked) == number:
            break
        mutant = chance.choice(places[place])
        tests = covered.tests(mutant.path, mutant.line)
        if tests:
            picked.append((mutant, tests))
        else:
            passed_over += 1
    print(f"seed {seed}: {len(picked)} of {len(order)} places; {passed_over} more are run by no unit test", flush=True)
    return picked


def main() -> int:
    """0 if at least nine of ten mutants were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=60, help="how many mutants")
    parser.add_argument("--only", default="shared/", help="modules whose path begins like this")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="areas whose unit tests are run")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()

    began = time.monotonic()
    sources = {
        path.relative_to(PROJECT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((PROJECT / "shared").rglob("*.py"))
    }
    covered = Coverage(record(options.workers, options.tests), sources)
    picked = _picked(options.seed, options.number, options.only, sources, covered)
    copies: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(options.workers):
        copied(KEPT / f"copy-{number}")
        copies.put(number)

    def judge(mutant: Mutant, tests: set[str]) -> bool | None:
        left = _MOST_SECONDS - (time.monotonic() - began)
        if left < _TESTS_SECONDS:
            return None
        number = copies.get()
        try:
            some = chosen(tests, covered.seconds, _TESTS_SECONDS)
            killed = is_killed(KEPT / f"copy-{number}", mutant, sources[mutant.path], some, min(left, _MUTANT_SECONDS))
        finally:
            copies.put(number)
        said = "killed  " if killed else "SURVIVED"
        print(f"{said} {mutant.path}:{mutant.line} ({len(some)} of {len(tests)} tests)", flush=True)
        return killed

    with ThreadPoolExecutor(options.workers) as pool:
        judged = list(pool.map(lambda one: judge(*one), picked))
    for (mutant, _), killed in zip(picked, judged, strict=True):
        if killed is False:
            print(f"\nsurvived: {mutant.diff(sources[mutant.path])}")
    done = [killed for killed in judged if killed is not None]
    share = sum(done) / len(done) if done else 0.0
    late = len(judged) - len(done)
    print(
        f"\n{sum(done)} of {len(done)} killed ({share:.0%}, goal {_GOAL:.0%}) in {time.monotonic() - began:.0f} s",
        end="",
    )
    print(f"; for {late} there was no time" if late else "")
    return 0 if share >= _GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
