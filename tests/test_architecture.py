"""The house: who may import whom, and what every public docstring must say."""

import ast
import importlib
import inspect
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from loopcheck import engines

HOUSE = Path(__file__).parent.parent
ALLOWED = {
    "robots": {"robots"},
    "analytic": {"analytic", "robots"},
    "engines": {"engines", "robots"},
    "validation": {"validation", "analytic", "engines", "robots"},
}
STOREYS: Mapping[str, Sequence[Collection[str]]] = {
    "validation": (
        {"execution"},
        {"common", "public_models"},
        {"report"},
        {"frame"},
        {"gate"},
        {"check", "convert", "new", "same", "versions"},
        {"judge", "serial", "tune"},
        {"studies"},
        {"commands", "matrices", "symbolic"},
    ),
    "analytic": ({"kinematics"}, {"dynamics", "motion"}, {"batch", "papers"}),
}
"""Parts of a room, the lowest first: none imports one that stands above it, or beside it in `validation`."""
REGISTERS = {"validation/frame/preload.py", "validation/frame/study.py"}
"""Files that name modules above: those that workers import first, and that of the study of a stored result."""
PACKAGES = {name: engines.engine(name).packages for name in engines.engine_names()}
"""What is imported in the folder of each engine only."""
SHARED = {f"engines/{name}.py" for name in ("as_is", "equations", "forward", "inventory_fields", "loads", "simulation")}
"""Functions of all engines that the walk through the example names."""
COMPILED_BY = ("linkage", "mjcf", "mjcf_paths", "missing_files", "model_file", "spec_elements", "urdf")
COMPILER = {("robots", "formats", f"{name}.py") for name in COMPILED_BY}
"""Files that call MuJoCo's compiler."""
LATE = {
    "analytic/logs/evaluation.py": {f"loopcheck.analytic.batch{part}" for part in ("", ".inverse", ".trace")},
    "validation/judge/library.py": {"loopcheck.validation.judge.written"},
}
"""Imports inside functions of what takes longer to import than all that most commands need."""
FILES = [path for room in ALLOWED for path in sorted((HOUSE / room).rglob("*.py"))]
"""A test goes through all of them: one for each file and rule would take the suite longer to list than to run."""


@pytest.fixture(scope="module", autouse=True)
def parsed() -> None:
    """Parse all modules, which most tests search."""
    for path in FILES:
        _nodes(path)


def test_imports_go_one_way() -> None:
    for path in FILES:
        room = path.relative_to(HOUSE).parts[0]
        ours = {module.split(".")[1] for module in _imports(path) if module.startswith("loopcheck.")} & set(ALLOWED)
        assert ours <= ALLOWED[room], path


def test_a_storey_knows_none_above_it() -> None:
    """A command's own module and the plugin of pytest are above all: they may offer what other commands do."""
    for path in FILES:
        room, place, *_ = path.relative_to(HOUSE).with_suffix("").parts
        storeys = STOREYS.get(room, ())
        own = next((k for k, storey in enumerate(storeys) if place in storey), None)
        if own is None or path.name in ("command.py", "pytest_plugin.py"):
            continue
        known = set().union(*storeys[: own + (room == "analytic")], {place})
        strings = () if path.relative_to(HOUSE).as_posix() in REGISTERS else _strings(path)
        named = [*_imports(path), *strings]  # a module that is imported by its name is told by a string
        parts_of_ours = [module.split(".")[1:] for module in named if module.startswith(f"loopcheck.{room}.")]
        assert {parts[1] for parts in parts_of_ours} & set().union(*storeys) <= known, path


def test_every_part_of_the_judge_has_its_storey() -> None:
    judge = HOUSE / "validation"
    parts = {path.relative_to(judge).with_suffix("").parts[0] for path in judge.rglob("*.py")}
    assert parts - {"__init__", "cli"} == set().union(*STOREYS["validation"])


def test_our_modules_are_imported_at_the_top_of_a_file() -> None:
    """Imports inside functions hide cycles. Commands answer fast by them, and an engine may not be installed."""
    for path in FILES:
        is_command = path.name in ("command.py", "cli.py", "options.py") or path.parent.name == "commands"
        is_engine = path.parent.parent.name == "engines" and path.name == "__init__.py"
        if not (is_command or is_engine):
            assert {*_hidden_imports(path)} <= LATE.get(path.relative_to(HOUSE).as_posix(), set()), path


def test_no_folder_imports_itself_through_others() -> None:
    """The graph of folders has no cycle at any depth, imports inside functions included; commands stand above all."""
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in FILES:
        if path.name in ("command.py", "cli.py", "options.py") or path.parent.name == "commands":
            continue
        if "engines" in (path.parent.name, path.parent.parent.name):
            continue  # plug-ins: the contract imports none of them by name
        own = path.relative_to(HOUSE).parent.parts
        for module in _imports(path):
            other = _folder_of(module)
            if other is not None and other != own and other[0] != "engines":
                graph.setdefault(own, set()).add(other)
    pairs = {
        (own[: k + 1], other[: k + 1])
        for own, others in graph.items()
        for other in others
        for k in range(min(len(own), len(other)))
        if own[:k] == other[:k] and own[: k + 1] != other[: k + 1]
    }
    cycles = TopologicalSorter({own: {b for a, b in pairs if a == own} for own, _ in pairs})
    cycles.prepare()  # raises CycleError with the folders


def test_numpy_1_suffices_for_an_older_release_of_an_engine() -> None:
    """PyBullet before 3.2.7 needs it, in an environment of its own; it has no `mT`."""
    for path in FILES:
        assert not [node for node in _nodes(path) if isinstance(node, ast.Attribute) and node.attr == "mT"], path


def test_an_engine_is_imported_only_in_its_folder() -> None:
    every = frozenset().union(*PACKAGES.values())
    for path in FILES:
        parts = path.relative_to(HOUSE).parts
        compiler = parts in COMPILER
        mine = PACKAGES.get(parts[1], frozenset()) if parts[0] == "engines" else {"mujoco"} if compiler else set()
        assert {module.split(".")[0] for module in _imports(path)} & every <= mine, path


def test_linters_ban_the_packages_of_every_engine() -> None:
    settings = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))
    banned = settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(banned) == set(ALLOWED).union(*PACKAGES.values())


def test_the_example_of_an_engine_is_short_and_explained() -> None:
    text = (HOUSE / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walk, example = text.split("`engines/dart/` is the example")[1].split("\n\n- ")[0], HOUSE / "engines" / "dart"
    parts = {str(path.relative_to(example)): path for path in example.rglob("*.py")}
    assert parts.keys() - {"routes/__init__.py"} == {*re.findall(r"`([\w/]+\.py)`", walk)} - SHARED
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in parts.values()) < 850


def test_private_modules_are_imported_only_from_their_own_package() -> None:
    """So that whatever another package needs of an engine stands in its contract, or in a module with a name."""
    for path in FILES:
        own = path.relative_to(HOUSE).with_suffix("").parts
        for module in _imports(path):
            parts = module.removeprefix("loopcheck.").split(".")
            private = [k for k, part in enumerate(parts) if k and part.startswith("_") and _is_module(parts[: k + 1])]
            assert all(list(own[:k]) == parts[:k] for k in private), (path, module)


def test_analytic_sources_share_no_dynamics() -> None:
    dynamics = {"noc", "lagrange", "papers", "forward", "recursive_wrenches", "maximal_wrenches"}
    allowed = {
        "energy.py": {"lagrange"},  # the power balance takes the potential energy from there
        "forward.py": {"noc", "lagrange"},  # offers both ways
        "recursive_wrenches.py": {"noc"},  # the wrenches of its equations
        "maximal_wrenches.py": {"lagrange"},  # as well
        "reactions.py": {"noc", "lagrange", "recursive_wrenches", "maximal_wrenches"},  # compares both
        "closed_log.py": {"noc"},  # a log is held against the reference
        "evaluation.py": {"noc"},  # as well
        "logged_wrenches.py": {"noc", "recursive_wrenches", "maximal_wrenches"},  # as well; the latter for uniqueness
        "automatic.py": {"noc"},  # the stroke of a generated motion; every source computes its efforts by itself
        "unactuated.py": {"noc"},  # moves what nothing drives; every source finds those accelerations again by itself
        "joint_space.py": {"noc"},  # the equations of the tree, seen at some of its joints
        "terms.py": {"noc"},  # the same, term by term
        "matrices.py": {"noc"},  # the reference's equations in chosen coordinates
        "plain.py": {"noc"},  # what the traced equations fall back on
    }
    for path in sorted((HOUSE / "analytic").rglob("*.py")):
        mine = {"papers"} if path.parent.name == "papers" else {path.stem}
        ours = [module.split(".")[1:] for module in _imports(path) if module.startswith("loopcheck.analytic.")]
        others = {part for module in ours for part in module[1:3]} & (dynamics - mine)
        assert others <= allowed.get(path.name, set()), path


def test_every_array_argument_has_a_unit_and_a_shape() -> None:
    for path in FILES:
        for function in _public_functions(path):
            doc = _with_what_it_refers_to(ast.get_docstring(function) or "")
            for name in _array_arguments(function):
                argument = f"{path}: {function.name}: argument {name}"
                entry = re.search(rf"^    {name}: (.*?)(?=^    \w+: |^\S|\Z)", doc, re.MULTILINE | re.DOTALL)
                assert entry, f"{argument} is not described"
                assert re.search(r"\[[^\]]+\]", entry[1]), f"{argument} has no unit"
                assert "shape (" in entry[1], f"{argument} has no shape"


def test_every_array_type_has_a_unit_and_a_shape() -> None:
    path = HOUSE / "robots" / "arrays.py"
    body = _tree(path).body
    plain = {"Array", "AnyArray"}
    types = {
        node.target.id: ast.literal_eval(text.value)
        for node, text in pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(text, ast.Expr)
    }
    assert len(types) == sum(isinstance(node, ast.AnnAssign) for node in body)
    for name in types.keys() - plain:
        assert re.search(r"\[[^\]]+\]", types[name]), f"{name} has no unit"
        assert "shape (" in types[name], f"{name} has no shape"


def _with_what_it_refers_to(doc: str) -> str:
    """A docstring, and that of the protocol's method which it names by "See `a.b.c`"."""
    reference = re.match(r"See `([\w.]+)`", doc)
    if not reference:
        return doc
    *module, owner, method = reference[1].split(".")
    try:
        declared = getattr(getattr(importlib.import_module(".".join(module)), owner), method)
    except (AttributeError, ImportError, ValueError):
        return doc
    return f"{doc}\n{inspect.getdoc(declared) or ''}"


def _folder_of(module: str) -> tuple[str, ...] | None:
    """Folder of a module or name of ours, as parts below the top."""
    parts = module.split(".")[1:] if module.startswith("loopcheck.") else []
    while parts:
        path = HOUSE.joinpath(*parts)
        if path.is_dir():
            return tuple(parts)
        if path.with_suffix(".py").is_file():
            return tuple(parts[:-1])
        parts = parts[:-1]
    return None


def _hidden_imports(path: Path) -> Iterator[str]:
    """Imports of our modules inside functions, but those of engines, which may not be installed."""
    for function in (node for node in _nodes(path) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if module.startswith("loopcheck") and not module.startswith("loopcheck.engines."):
                yield module


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(_tree(path)))


def _is_module(parts: list[str]) -> bool:
    return HOUSE.joinpath(*parts).with_suffix(".py").exists()


def _imports(path: Path) -> Iterator[str]:
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _strings(path: Path) -> Iterator[str]:
    """Texts that are no prose."""
    for node in _nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield node.value


def _array_arguments(function: ast.FunctionDef) -> Iterator[str]:
    for argument in (*function.args.args, *function.args.kwonlyargs):
        if argument.annotation is not None and ast.unparse(argument.annotation) in ("Array", "AnyArray"):
            yield argument.arg


def _public_functions(path: Path) -> Iterator[ast.FunctionDef]:
    tree = _tree(path)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for node in [*tree.body, *(item for cls in classes for item in cls.body)]:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node
