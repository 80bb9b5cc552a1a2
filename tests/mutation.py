"""Mutation test of the judge: `python -m tests.mutation [MUTANTS PER FILE]`.

mutmut changes the code of the files that `[tool.mutmut]` names, one place at a time, and runs the tests that reach it.
A mutant that none of them kills must stand in `mutation.toml` with the reason why it is equivalent, or this fails.
"""

import json
import random
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

SEED = 15
SURVIVORS = Path(__file__).with_name("mutation.toml")


def mutants(path: Path) -> list[str]:
    """Names of all mutants of a file."""
    source = path.read_text(encoding="utf-8")
    return [get_mutant_name(path, name) for name in mutate_file_contents(str(path), source, None, None).mutant_names]


def exit_codes(path: Path) -> Mapping[str, int | None]:
    """How the tests ended for each mutant of a file; 0 where none of them failed."""
    written = Path("mutants") / path.with_name(f"{path.name}.meta")
    codes: Mapping[str, int | None] = json.loads(written.read_text(encoding="utf-8"))["exit_code_by_key"]
    return codes


def changed_line(name: str) -> str:
    """The line of a mutant that is not as in the code."""
    shown = subprocess.run([sys.executable, "-m", "mutmut", "show", name], capture_output=True, text=True, check=True)
    added = [line[1:].strip() for line in shown.stdout.splitlines() if line.startswith("+") and line[:3] != "+++"]
    return " ".join(added)


def tried(most: int) -> Iterator[tuple[Path, list[str]]]:
    """Mutants of each file, at most so many: the same ones whenever the file is the same."""
    for path in map(Path, config().only_mutate):
        names = mutants(path)
        random.Random(SEED).shuffle(names)
        yield path, names[:most]


def main() -> int:
    """Try the mutants, print how many were killed, and return an exit status."""
    samples = dict(tried(int(sys.argv[1]) if len(sys.argv) > 1 else sys.maxsize))
    names = [name for sample in samples.values() for name in sample]
    subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", "1", *names], check=True)
    listed = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))["equivalent"]
    equivalent = {line for group in listed for line in group["lines"]}
    missed = []
    for path, sample in samples.items():
        codes = exit_codes(path)
        alive = [name for name in sample if not codes[name]]
        unexplained = [name for name in alive if changed_line(name) not in equivalent]
        missed += unexplained
        killed, known = len(sample) - len(alive), len(alive) - len(unexplained)
        sys.stdout.write(f"{path}: {len(sample)} tried, {killed} killed, {known} equivalent\n")
    sys.stdout.writelines(f"not killed: {name}: {changed_line(name)}\n" for name in missed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
