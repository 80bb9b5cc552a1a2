"""Comparison of two model files of a robot: differences by field, and the dynamics."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from loopcheck.analytic.kinematics.offsets import with_closed_loops
from loopcheck.robots.errors import HarnessError, MechanismError, NotFoundError
from loopcheck.robots.formats.losses import unread, want_losses
from loopcheck.robots.formats.mjcf import describe
from loopcheck.robots.mechanism import Mechanism
from loopcheck.validation.common.json_values import finite
from loopcheck.validation.gate.gate import model_path
from loopcheck.validation.same.fields import DRIVES, FIELDS, FORCES, Difference, differences, of_forces, of_loops
from loopcheck.validation.same.mechanisms import (
    SHARED,
    Dynamics,
    compare,
    loops_of,
    mechanism_of,
    random_poses,
)
from loopcheck.validation.same.pairs import Pairing, align, paired

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "loopcheck.same/1"
EXACT = 1e-9
"""Largest difference of every field with `exact` [as the field]."""
VERDICTS = {0: "same", 1: "different", 3: "not comparable"}
"""Verdicts by exit status."""


class Options(TypedDict, total=False):
    """Options besides the files."""

    free_base: bool
    """Compare with a free base, even if a file fixes it to the world."""
    without_actuators: bool
    """Ignore effort limits, and the choice of driven joints."""
    ignore: Sequence[str]
    """Fields to ignore, as `armature`."""
    exact: bool
    """Allow round-off only, instead of the digits of usual files."""
    leave_out: Sequence[str]
    """Elements of the files that are accepted although they are not read, TAG or TAG:NAME."""
    mapping: Mapping[str, str]
    """Joints of A with their partners in B, if their names differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameResult:
    """The comparison of two model files."""

    a: str
    b: str
    rows: tuple[Difference, ...]
    """Fields that differ, the largest over its tolerance first."""
    dofs: Dynamics | None
    """Forces on the joints; None if the dynamics is not comparable."""
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

    @property
    def differences(self) -> "pd.DataFrame":
        """The rows as a table."""
        import pandas as pd

        return pd.DataFrame([row._asdict() for row in self.rows], columns=Difference._fields)

    @property
    def forces(self) -> "pd.DataFrame":
        """A row for each dof: joint, unit, error and scale [N or N m]; empty if the dynamics is not comparable."""
        import pandas as pd

        return pd.DataFrame(self.dofs._asdict() if self.dofs else {}, columns=Dynamics._fields)

    def report(self, path: str | Path) -> Path:
        """Write the object of `loopcheck same --format json` to a file."""
        Path(path).write_text(self.as_json() + "\n", encoding="utf-8")
        return Path(path)

    def as_json(self) -> str:
        """The object of `loopcheck same --format json`."""
        fields = ("exit_status", "verdict", "a", "b", "joints", "dynamics", "notes")
        dofs = zip(*self.dofs, strict=True) if self.dofs else ()
        entries = {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in fields},
            **dict(zip(("only_in_a", "only_in_b"), self.only, strict=True)),
            "differences": [row._asdict() for row in self.rows],
            "forces": [dict(zip(Dynamics._fields, dof, strict=True)) for dof in dofs],
        }
        return json.dumps(finite(entries))


def same(a: str | Path, b: str | Path, **options: Unpack[Options]) -> SameResult:
    """Compare two model files of a robot: fields of bodies, joints and drives, and forces on the joints.

    Args:
        a: A catalogue robot, a model file or a folder with `robot.toml`.
        b: Another.
        **options: See `Options`.

    Raises:
        HarnessError: If a file is bad, or an option has an unknown name.
    """
    for name, known in (
        *((name, Options.__annotations__) for name in options),
        *((name, FIELDS) for name in options.get("ignore", ())),
    ):
        if name not in known:
            raise NotFoundError("field or option of same", name, known)
    accepted = options.get("leave_out", ())
    descriptions = [describe(model_path(str(target)), accepted) for target in (a, b)]
    descriptions = [replace(one, mechanism=with_closed_loops(one.mechanism)) for one in descriptions]
    losses = [loss for one in descriptions for loss in one.mechanism.losses]
    want_losses(accepted, losses)
    pairing = paired(descriptions, options.get("mapping", {}))
    trees, pairs = pairing.trees, align(*pairing.trees, pairing.names)
    free = options.get("free_base", False) or all(tree.floating for tree in trees)
    mechanisms: tuple[Mechanism, Mechanism] | None = None
    forces, loops = None, list[Difference]()
    try:
        if any(not pair.is_regular or pair.a.kind != pair.b.kind for pair in pairs):
            raise MechanismError("the kinematic trees differ")
        left, right = (mechanism_of(tree, pairs, is_a=tree is trees[0], is_free=free) for tree in trees)
        mechanisms, q = (left, right), random_poses(left)
        if all(tree.mechanism.closures for tree in trees) and not any(pairing.only):
            q, gap, freedoms = loops_of(*trees, pairs, left)
            loops = list(of_loops(gap, freedoms))
        forces = compare(left, right, q)
        dynamics = _in_words(forces, mechanisms, pairing, free=free, states=(len(q), bool(loops)))
    except HarnessError as error:
        dynamics = f"Dynamics not comparable: {error}"
    exact, left_out = options.get("exact", False), {*options.get("ignore", ())}
    left_out |= {*DRIVES} if options.get("without_actuators") else set()
    rows = [
        row
        for row in (*differences(trees, pairs, mechanisms), *loops)
        if row.field not in left_out and row.difference > (EXACT if exact else row.tolerance)
    ]
    if forces and not rows:
        rows = [row for row in of_forces(forces) if row.difference > (EXACT if exact else row.tolerance)]
    rows.sort(key=lambda row: -row.difference / max(row.tolerance, EXACT))
    lost = [f"{loss.place}: {loss}" for loss in unread(losses)]
    incomplete = forces is None or any(pairing.only) or any(tree.left_out for tree in trees) or bool(lost)
    return SameResult(
        a=str(a),
        b=str(b),
        rows=tuple(rows),
        dofs=forces,
        dynamics=dynamics,
        notes=(*lost, *pairing.notes, *_notes_of_bases(pairing, is_free=free)),
        only=pairing.only,
        joints=len(pairs) - 1,
        exit_status=1 if rows else 3 if incomplete else 0,
    )


def _notes_of_bases(pairing: Pairing, *, is_free: bool) -> list[str]:
    floating = [tree.floating for tree in pairing.trees]
    if floating[0] == floating[1]:
        return []
    held = "the other gets one" if is_free else "held for the dynamics. Compare with a free base: --free-base"
    return [f"Only {'AB'[floating[1]]} has a free base: {held}"]


def _in_words(
    forces: Dynamics, mechanisms: tuple[Mechanism, Mechanism], pairing: Pairing, *, free: bool, states: tuple[int, bool]
) -> str:
    """The comparison of the dynamics, at a number of states that close the loops or not."""
    if not len(forces.error):
        return "No joint: no dynamics to compare"
    models = [tree.mechanism for tree in pairing.trees]
    held = ["the base"] if not free and any(tree.floating for tree in pairing.trees) else []
    held += ["the other joints"] if any(pairing.only) else []
    under = " on closed loops" if states[1] else " of the spanning trees" if any(m.closures for m in models) else ""
    under += f" with {' and '.join(held)} held" if held else ""
    under += " without tendons and springs between points" if any(m.tendons or m.point_springs for m in models) else ""
    k = int(forces.relative.argmax())
    if forces.relative[k] <= FORCES:
        return f"The same dynamics{under} to {forces.relative[k]:.1e} of the largest force at {states[0]} random states"
    joints = list(zip(*(each.joints for each in mechanisms), strict=True))
    taken = [name for name in SHARED if any(getattr(a, name) != getattr(b, name) for a, b in joints)]
    given = f", with {' and '.join(taken)} of A" if taken else ""
    return (
        f"Forces on joints{under} differ by up to {forces.relative[k]:.2%} of the largest at '{forces.joint[k]}' "
        f"({forces.error[k]:.2g} of {forces.scale[k]:.2g} {forces.unit[k]}) at {states[0]} random states{given}"
    )
