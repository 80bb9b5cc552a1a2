"""Comparison of two model files of a robot: differences by field, and the dynamics."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loopcheck.robots.errors import HarnessError, NotFoundError, listed
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.mjcf import Description, describe
from loopcheck.validation.gate.gate import model_path
from loopcheck.validation.same.fields import DRIVES, Difference, differences, of_loops
from loopcheck.validation.same.links import Link, Tree, tree_of, with_hinges
from loopcheck.validation.same.mechanisms import STATES, Dynamics, Model, compare
from loopcheck.validation.same.pairs import LENGTH, align, kind_of, partners

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "loopcheck.same/1"
EXACT = 1e-9
"""Largest difference of every field with `exact` [as the field]."""
FORCES = 1e-2
"""Difference of the forces on joints that digits of files explain, relative to the largest [-]."""
VERDICTS = ("same", "different", "", "not comparable")
"""Verdict by exit status."""
NAMED = 5
"""Largest number of joints that a sentence lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameResult:
    """The comparison of two model files."""

    a: str
    b: str
    differences: "pd.DataFrame"
    """A row for each field that differs, the largest over its tolerance first: element, name, field, unit, a, b,
    difference, tolerance."""
    forces: "pd.DataFrame"
    """A row for each dof: joint, unit, error and scale [N or N m]; empty if the dynamics is not comparable."""
    dynamics: str
    """The comparison of the dynamics, a sentence."""
    notes: tuple[str, ...]
    """Ignored and adapted elements, a sentence each."""
    only: tuple[tuple[str, ...], tuple[str, ...]]
    """Joints without a partner, of A and of B."""
    joints: int
    """Number of compared joints."""
    exit_status: int
    """0 the same, 1 a field differs, 3 not comparable."""

    @property
    def verdict(self) -> str:
        """`same`, `different` or `not comparable`."""
        return VERDICTS[self.exit_status]

    def report(self, path: str | Path) -> Path:
        """Write the object of `loopcheck same --format json` to a file."""
        Path(path).write_text(self.as_json() + "\n", encoding="utf-8")
        return Path(path)

    def as_json(self) -> str:
        """The object of `loopcheck same --format json`."""
        entries = {
            "schema": SCHEMA,
            "exit_status": self.exit_status,
            "verdict": self.verdict,
            **{name: getattr(self, name) for name in ("a", "b", "joints", "dynamics", "notes")},
            "only_in_a": self.only[0],
            "only_in_b": self.only[1],
            "differences": self.differences.to_dict("records"),
            "forces": self.forces.to_dict("records"),
        }
        return json.dumps(_finite(entries))


class Pairing(NamedTuple):
    """Two trees with the same joints."""

    trees: tuple[Tree, Tree]
    names: Mapping[str, str]
    """Joints of A with their partners in B."""
    only: tuple[tuple[str, ...], tuple[str, ...]]
    """Joints without a partner, of A and of B; fixed at zero in the trees."""
    notes: tuple[str, ...]


def same(
    a: str | Path,
    b: str | Path,
    *,
    free_base: bool = False,
    without_actuators: bool = False,
    exact: bool = False,
    mapping: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
) -> SameResult:
    """Compare two model files of a robot: fields of bodies, joints and drives, and forces on the joints.

    Args:
        a: A catalogue robot, a model file or a folder with `robot.toml`.
        b: Another.
        free_base: Compare with a free base, even if a file fixes it to the world.
        without_actuators: Ignore effort limits, and the choice of driven joints.
        exact: Allow round-off only, instead of the digits of usual files.
        mapping: Joints of A with their partners in B, if their names differ.
        ignore: Fields to ignore, as `armature`.

    Raises:
        HarnessError: If a file is bad, or `mapping` names an unknown joint.
    """
    import pandas as pd

    pairing = _paired([describe(model_path(str(target))) for target in (a, b)], mapping or {})
    free, pairs = free_base or all(tree.floating for tree in pairing.trees), align(*pairing.trees, pairing.names)
    left, right = (Model(tree=tree, pairs=pairs, is_a=not k, is_free=free) for k, tree in enumerate(pairing.trees))
    comparable = all(pair.regular and kind_of(pair.a) == kind_of(pair.b) for pair in pairs)
    mechanisms = (left.mechanism, right.mechanism) if comparable else None
    rows = list(differences(pairing.trees, pairs, mechanisms))
    forces, dynamics = None, "Dynamics not comparable: the kinematic trees differ"
    if mechanisms:
        try:
            forces = compare(*mechanisms)
            dynamics = _in_words(forces, mechanisms, pairing, free=free)
            rows += of_loops(forces)
        except HarnessError as error:
            dynamics = f"Dynamics not comparable: {error}"
    left_out = {*ignore, *(DRIVES if without_actuators else ())}
    rows = [row for row in rows if row.field not in left_out and row.difference > (EXACT if exact else row.tolerance)]
    if forces and not rows and len(forces.error) and (largest := forces.relative.max()) > (EXACT if exact else FORCES):
        rows = [Difference("robot", "", "forces on joints", "", (0.0,), (float(largest),), float(largest), FORCES)]
    incomplete = forces is None or any(pairing.only) or any(tree.left_out for tree in pairing.trees)
    rows.sort(key=lambda row: -row.difference / max(row.tolerance, EXACT))
    return SameResult(
        a=str(a),
        b=str(b),
        differences=pd.DataFrame([row._asdict() for row in rows], columns=Difference._fields),
        forces=pd.DataFrame(_rows_of(forces), columns=["joint", "unit", "error", "scale"]),
        dynamics=dynamics,
        notes=(*pairing.notes, *_notes_of_bases(pairing.trees, free_base=free_base)),
        only=pairing.only,
        joints=len(pairs) - 1,
        exit_status=1 if rows else 3 if incomplete else 0,
    )


def _paired(descriptions: Sequence[Description], mapping: Mapping[str, str]) -> Pairing:
    """Both trees with the joints that they share; a ball and three hinges are made the same."""
    trees = [tree_of(each) for each in descriptions]
    for known, name in (pair for of in mapping.items() for pair in zip(trees, of, strict=True)):
        if name not in (names := [link.name for link in known.links[1:]]):
            raise NotFoundError(f"joint in {known.mechanism.model.path.name}", name, names)
    names = partners(trees[0], trees[1], mapping)
    rest = [
        [link for link in tree.links[1:] if link.name not in of]
        for tree, of in zip(trees, ({*names}, {*names.values()}), strict=True)
    ]
    balls = [
        (k, ball, *found) for k in (0, 1) for ball in rest[k] if (found := _as_hinges(ball, trees[1 - k], rest[1 - k]))
    ]
    adapted = {ball.name for _, ball, *_ in balls} | {hinge.name for _, _, hinges, _ in balls for hinge in hinges}
    only = [tuple(link.name for link in of if link.name not in adapted) for of in rest]
    trees = [tree_of(each, locked) for each, locked in zip(descriptions, only, strict=True)]
    notes = [f"'{name}' is '{other}' in B" for name, other in names.items() if name != other]
    notes = [f"Names of joints differ: {listed(notes, NAMED)}"] if notes else []
    for k, ball, hinges, turn in balls:
        place = next(i for i, link in enumerate(trees[k].links) if link.name == ball.name)
        trees[k] = with_hinges(trees[k], place, hinges, turn)
        names |= {hinge.name: hinge.name for hinge in hinges}
    if balls:
        notes.append(f"Ball joints as three hinges: {listed([ball.name for _, ball, *_ in balls], NAMED)}")
    for side, of, tree in zip("AB", only, trees, strict=True):
        if of:
            notes.append(
                f"Joints in {side} only, compared fixed at zero: {listed(of, NAMED)}. Pair other names with --map A=B"
            )
        notes += [f"Not compared in {side}: {each}" for each in tree.left_out]
    return Pairing((trees[0], trees[1]), names, (only[0], only[1]), tuple(notes))


def _as_hinges(ball: Link, tree: Tree, rest: Sequence[Link]) -> tuple[tuple[Link, ...], Any] | None:
    """Three hinges of another tree in place of a ball joint, and the rotation from the axes of that tree."""
    for last in rest if kind_of(ball) == "ball" else ():
        hinges = [last]
        while len(hinges) < 3 and hinges[0].parent > 0:
            hinges.insert(0, tree.links[hinges[0].parent])
        at_a_point = all(np.linalg.norm(each.anchor - last.anchor) <= LENGTH for each in hinges)
        common = [name for name in ball.bodies if name in last.bodies]
        named = all(ball.name in each.name for each in hinges)
        missing = all(kind_of(each) == "hinge" and any(each is link for link in rest) for each in hinges)
        if len(hinges) == 3 and missing and at_a_point and (common or named):
            turn = ball.bodies[common[0]][:3, :3] @ last.bodies[common[0]][:3, :3].T if common else np.eye(3)
            return tuple(hinges), turn
    return None


def _notes_of_bases(trees: tuple[Tree, Tree], *, free_base: bool) -> list[str]:
    if trees[0].floating == trees[1].floating:
        return []
    side = "AB"[trees[1].floating]
    return [
        f"Only {side} has a free base: the other gets one"
        if free_base
        else f"Only {side} has a free base: held for the dynamics. Compare with a free base: --free-base"
    ]


def _in_words(forces: Dynamics, mechanisms: tuple[Mechanism, Mechanism], pairing: Pairing, *, free: bool) -> str:
    if not len(forces.error):
        return "No joint: no dynamics to compare"
    k = int(forces.relative.argmax())
    where = f"at '{forces.joints[k]}' ({forces.error[k]:.2g} of {forces.scale[k]:.2g} {forces.units[k]})"
    held = ["the base"] if not free and any(tree.floating for tree in pairing.trees) else []
    held += ["the other joints"] if any(pairing.only) else []
    fixed = f" with {' and '.join(held)} held" if held else ""
    loops = sum(bool(each.closures) for each in mechanisms)
    of = " of the spanning trees" if loops == 1 else " on closed loops" if loops else ""
    if forces.relative[k] <= FORCES:
        return (
            f"The same dynamics{of}{fixed} to {forces.relative[k]:.1e} of the largest force at {STATES} random states"
        )
    drives = ("armature", "damping", "friction")
    taken = [
        name
        for name in drives
        if any(getattr(a, name) != getattr(b, name) for a, b in zip(*(m.joints for m in mechanisms), strict=True))
    ]
    given = f"With {' and '.join(taken)} of A, f" if taken else "F"
    return f"{given}orces on joints{of}{fixed} differ up to {forces.relative[k]:.2%} of the largest {where} at {STATES} random states"


def _rows_of(forces: Dynamics | None) -> list[dict[str, Any]]:
    if forces is None:
        return []
    of = zip(forces.joints, forces.units, map(float, forces.error), map(float, forces.scale), strict=True)
    return [dict(zip(("joint", "unit", "error", "scale"), row, strict=True)) for row in of]


def _finite(value: Any) -> Any:
    """A value for JSON: without infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
