"""Mutation test of the judge: `python -m tests.mutation [MUTANTS PER FILE [FOLDER OR FILE...]]`.

mutmut changes the code of the files in `[tool.mutmut]`, a single place at a time, and runs the tests that reach it.
A surviving mutant must be listed in `mutation.toml` with the reason for its equivalence, otherwise this fails. A
listed mutant that is killed fails too: its tests then fail for another reason than the mutants.
"""

import json
import random
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

SEED = 15
SURVIVORS = Path(__file__).with_name("mutation.toml")
KILLED = {"killed", "timeout", "segfault"}
"""mutmut's status of a mutant that a test noticed; a mutant without tests does not count."""


def mutants(path: Path) -> list[str]:
    """Names of all mutants of a file."""
    source = path.read_text(encoding="utf-8")
    return [get_mutant_name(path, name) for name in mutate_file_contents(str(path), source, None, None).mutant_names]


def exit_codes(path: Path) -> Mapping[str, int | None]:
    """Results of the tests for each mutant of a file, as mutmut's codes."""
    written = Path("mutants") / path.with_name(f"{path.name}.meta")
    codes: Mapping[str, int | None] = json.loads(written.read_text(encoding="utf-8"))["exit_code_by_key"]
    return codes


def changed_line(name: str, path: Path) -> str:
    """The line of a mutant of a file that is not as in the code."""
    shown = get_diff_for_mutant(name, path=path).splitlines()
    return " ".join(line[1:].strip() for line in shown if line.startswith("+") and line[:3] != "+++")


def tried(most: int, places: Sequence[str]) -> Iterator[tuple[Path, list[str]]]:
    """Mutants of each file in some places, up to a number: the same mutants for the same file."""
    for path in map(Path, config().only_mutate):
        if places and not any(path.is_relative_to(place) for place in places):
            continue
        names = mutants(path)
        random.Random(SEED).shuffle(names)
        yield path, names[:most]


def main() -> int:
    """Try the mutants, print how many were killed, and return an exit status."""
    samples = dict(tried(int(sys.argv[1]) if len(sys.argv) > 1 else sys.maxsize, sys.argv[2:]))
    names = [name for sample in samples.values() for name in sample]
    subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", "1", *names], check=True)
    listed = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))["equivalent"]
    equivalent = {line for group in listed for line in group["lines"]}
    wrong = []
    for path, sample in samples.items():
        codes, lines = exit_codes(path), {name: changed_line(name, path) for name in sample}
        alive = {name for name in sample if status_by_exit_code[codes[name]] not in KILLED}
        known = {name for name in sample if lines[name] in equivalent}
        sys.stdout.write(
            f"{path}: {len(sample)} tried, {len(sample) - len(alive)} killed, {len(alive & known)} equivalent\n"
        )
        wrong += [f"not killed: {name}: {lines[name]}\n" for name in sorted(alive - known)]
        wrong += [f"killed, but said to be equivalent: {name}: {lines[name]}\n" for name in sorted(known - alive)]
    sys.stdout.writelines(wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
