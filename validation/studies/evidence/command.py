"""`loopcheck study evidence`."""

import sys
from fnmatch import fnmatch

import click

from loopcheck.validation.frame.options import RESULTS, Command, Execution, execution_options, option

PARTS = ("catalogue", "atlas", "logs", "known-issues")
ATLAS_SOURCES = tuple(f"{engine}/kkt" for engine in ("pinocchio", "pybullet", "dart", "drake", "simbody"))
"""Sources for the atlas besides those of MuJoCo: the exact route of every engine that reads most of its models."""


@click.command(cls=Command, short_help="All figures of the documents, computed again from one commit.")
@click.argument("parts", metavar="[PART]...", nargs=-1, type=click.Choice(PARTS))
@option(
    "--only",
    metavar="PATTERN",
    default="*",
    show_default=True,
    help="Pattern of the names of robots, models and known issues.",
)
@option(
    "--draws",
    default=200,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of noisy logs per kind of sensor.",
)
@option(
    "--remote",
    metavar="PREFIX",
    help="Address in front of OWNER/NAME of each repository of the atlas.  [default: GitHub]",
)
@execution_options(RESULTS / "evidence")
def command(parts: tuple[str, ...], only: str, draws: int, remote: str | None, execution: Execution) -> int:
    """Compute all rows of the catalogue and the atlas, noisy logs and known issues again, from one state of the code.

    run.json names the commit and a digest of the code. The folders catalogue and atlas contain the tables for the
    documents. Known issues of an engine that is not installed are not run; use an environment with the engine. By
    default all parts are computed, which takes more than an hour. Run the same command again to resume.

    \b
    Examples:
      loopcheck study evidence
      loopcheck study evidence catalogue known-issues --only '3prr'
    """
    from loopcheck.robots.catalogue import names
    from loopcheck.robots.robot import load, representative_case
    from loopcheck.validation.check.study import Check
    from loopcheck.validation.common.known_issues import known_issues
    from loopcheck.validation.common.targets import cases_of
    from loopcheck.validation.public_models.fetching import PUBLIC
    from loopcheck.validation.public_models.manifest import entries
    from loopcheck.validation.studies.atlas.study import Atlas, sources_of
    from loopcheck.validation.studies.evidence.study import Evidence

    selected = parts or PARTS
    robots = [name for name in names() if fnmatch(name, only)]
    issues = [issue for issue in known_issues() if fnmatch(issue.key, only)]
    models = [entry for entry in entries() if fnmatch(entry.model.id, only)] if "atlas" in selected else []
    catalogue = {"catalogue": Check(cases=cases_of(robots, variants=["default"]), draws=False)} if robots else {}
    atlas = (
        {"atlas": Atlas(entries=models, remote=remote or PUBLIC, sources=sources_of(["mujoco"], ATLAS_SOURCES))}
        if models
        else {}
    )
    return execution.run(
        Evidence(
            studies={**(catalogue if "catalogue" in selected else {}), **atlas},
            logged=[representative_case(load("3prr"))] if "logs" in selected else [],
            draws=draws,
            issues=issues if "known-issues" in selected else [],
            command=sys.argv,
        )
    )
