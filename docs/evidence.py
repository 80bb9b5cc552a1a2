"""Compute the kept figures again, from one state of the code: `python -m docs.evidence [PART]... [--remote PREFIX]`.

The parts are `catalogue`, `atlas`, `logs` and `known-issues`; all of them take more than an hour. The tables of the
first two are in `build/evidence`, for `docs.catalogue_tables` and `docs.atlas_tables`; `run.json` there names the
commit and a digest of the code. The same command resumes. Exit status 1 for a false verdict on a noisy log, a fault
that is not found, or a known issue that is not reproduced.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product

import click
import numpy as np

from docs.evidence_age import ATLAS, CATALOGUE, code_digest
from docs.noisy_logs import ENCODERS, SAMPLINGS, SENSORS, WITHIN, Draws, judged_draws
from loopcheck.robots.catalogue import names
from loopcheck.robots.robot import load, representative_case
from loopcheck.validation.check.study import Check
from loopcheck.validation.common.known_issues import REPRODUCED_BY
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.folders import ROOT
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import write_tables
from loopcheck.validation.execution.workers import ALL_CORES, worker_pool
from loopcheck.validation.frame.study import Study, run_study
from loopcheck.validation.public_models.fetching import PUBLIC
from loopcheck.validation.public_models.manifest import entries
from loopcheck.validation.report.terminal import show
from loopcheck.validation.studies.atlas.study import Atlas, sources_of

LOGS, ISSUES = "logs", "known-issues"
PLACE = ROOT / "build/evidence"
ATLAS_SOURCES = tuple(f"{engine}/kkt" for engine in ("pinocchio", "pybullet", "dart", "drake", "simbody"))
"""Sources for the atlas besides those of MuJoCo: the exact route of every engine that reads most of its models."""
ROBOT, DRAWS, AT_ONCE = "3prr", 200, 20
"""Robot of the noisy logs, number of logs for each combination of sensors and each sampling, and logs in a task [-]."""


def keep(study: Study, part: str) -> None:
    """Compute a collection of the documents, with the digest of the code in its record."""
    code = code_digest()
    result, _ = run_study(study, PLACE / part, command=sys.argv, say=show)
    write_tables(PLACE / part, study.tables, result.tables, {**result.record, "code": code})


def noisy_logs(draws: int = DRAWS) -> Iterator[Draws]:
    """Judged noisy logs, for each combination of sensors and each sampling, with a line on the terminal."""
    case = representative_case(load(ROBOT))
    kinds = list(product(product(ENCODERS, SENSORS), SAMPLINGS))
    blocks = [range(k, min(k + AT_ONCE, draws)) for k in range(0, draws, AT_ONCE)]
    with worker_pool(ALL_CORES) as pool:
        found = pool.results([Task(judged_draws, (case, *kind, block)) for kind in kinds for block in blocks], LOGS)
    for k, kind in enumerate(kinds):
        yield (of_kind := joined(found[k * len(blocks) : (k + 1) * len(blocks)]))
        show([f"{ROBOT}, {kind}: {sentence(of_kind)}"])


def joined(parts: Sequence[Draws]) -> Draws:
    """Some draws as one."""
    counts = {name: sum(getattr(part, name) for part in parts) for name in ("false", "caught", "doubted")}
    rms, floor = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rms", "floor"))
    return Draws(rms=rms, floor=floor, **counts)


def sentence(draws: Draws) -> str:
    """Counts of draws, and how often the floor is within its range of the true error."""
    least, most = WITHIN
    shares = ", ".join(
        f"{100 * np.mean((least <= ratio) & (ratio <= most)):.1f} % ({name})"
        for name, ratio in (("its own", draws.realized), ("expected", draws.expected), ("exact model", draws.best))
    )
    return (
        f"{draws.false} false verdicts on {len(draws.rms)} logs; {draws.caught} faults of three floors detected, "
        f"{draws.doubted} suspected of a defect; floor over residual within {least:g} to {most:g}: {shares}"
    )


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice([CATALOGUE, ATLAS, LOGS, ISSUES]))
@click.option("--remote", default=PUBLIC, help="Address in front of OWNER/NAME of each repository of the atlas.")
def main(parts: tuple[str, ...], remote: str) -> None:
    """Compute the parts."""
    chosen, failed = parts or (CATALOGUE, ATLAS, LOGS, ISSUES), False
    if CATALOGUE in chosen:
        keep(Check(cases=cases_of(names(), variants=["default"]), draws=False), CATALOGUE)
    if ATLAS in chosen:
        keep(Atlas(entries=entries(), remote=remote, sources=sources_of(["mujoco"], ATLAS_SOURCES)), ATLAS)
    if LOGS in chosen:
        judged = list(noisy_logs())
        failed = any(draws.false or draws.caught < len(draws.rms) for draws in judged)
    if ISSUES in chosen:
        tests = [sys.executable, "-m", "pytest", "-q", "-rs", "--extended", str(ROOT / REPRODUCED_BY)]
        failed |= subprocess.run(tests, cwd=ROOT, check=False).returncode != 0
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
