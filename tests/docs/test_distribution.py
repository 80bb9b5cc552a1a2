"""Files for distribution: recipe, container, release and paper agree with the package."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = {"matplotlib-base": "matplotlib", "mujoco-python": "mujoco"}
"""Names of packages of conda-forge that differ from PyPI."""


def _ranges(requirements: list[str]) -> dict[str, str]:
    """Range of each requirement by its name on PyPI."""
    found = {}
    for requirement in requirements:
        name, limits = re.fullmatch(r"([\w-]+)\s*([^;]*?)\s*(?:;.*)?", requirement).groups()  # type: ignore[union-attr]
        found[CONDA.get(name, name)] = limits
    return found


def test_the_recipe_has_the_dependencies_and_the_version_of_the_package() -> None:
    text = (ROOT / "conda/recipe.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(text)
    run = _ranges(recipe["requirements"]["run"])
    assert run.pop("python") == PROJECT["requires-python"]
    assert run == _ranges(PROJECT["dependencies"])
    assert recipe["context"]["version"] == PROJECT["version"]
    (entry,) = (f"{name} = {place}" for name, place in PROJECT["scripts"].items())
    assert recipe["build"]["python"]["entry_points"] == [entry]


def test_the_container_gets_all_packages_and_nothing_else() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"}
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]
    assert kept == {*folders.values(), "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]}


def test_the_release_workflow_builds_and_publishes_nothing() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["build"]["steps"]
    commands = " ".join(step.get("run", "") for step in steps)
    assert all(command in commands for command in ("uv build", "twine check --strict", ".ci/wheel"))
    actions = {step["uses"].partition("@")[0] for step in steps if "uses" in step}
    assert actions == {"actions/checkout", "actions/setup-python", "actions/upload-artifact"}
    assert not re.search(r"publish|upload|password|secrets", commands)


def test_every_reference_of_the_paper_is_cited_and_known() -> None:
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper.md").read_text(encoding="utf-8")))
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited == known


PLACEHOLDER = re.compile(r"\b(?:[A-Z]+-OF-[A-Z-]+|OWNER/REPOSITORY|WHEEL|@COMMIT|rev: COMMIT|PATH-TO-\w+)\b")


def test_no_document_has_a_placeholder_or_another_version() -> None:
    """A reader can paste every block; wheels and sentences have the version of the package."""
    paths = [
        ROOT / "README.md",
        ROOT / "docs/reference/results.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/how_to").glob("*.md"),
    ]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert PLACEHOLDER.findall(text) == [], path.name
        for version in re.findall(r"\bloopcheck[ -](\d+\.\d+(?:\.\d+)?)", text):
            assert version == PROJECT["version"], path.name


def test_the_action_of_the_documents_takes_the_wheel_of_this_version() -> None:
    text = (ROOT / "docs/how_to/run_in_ci.md").read_text(encoding="utf-8")
    (step,) = re.findall(r"uses: ./.github/actions/loopcheck\n +with: (\{.*\})", text)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    given = yaml.safe_load(step)
    assert set(given) <= set(inputs)
    assert given["package"] == f"wheels/loopcheck-{PROJECT['version']}-py3-none-any.whl"
    hook = yaml.safe_load(re.findall(r"^repos:\n.*?(?=^```)", text, re.DOTALL | re.MULTILINE)[0])["repos"][0]["hooks"][
        0
    ]
    (ours,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["entry"]) == (ours["id"], ours["entry"])
