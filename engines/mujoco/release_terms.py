"""Terms of a model file in any release of MuJoCo from 2.3.7 on.

Runs in environments of other releases with numpy and MuJoCo alone: nothing of loopcheck may be imported.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np

Named = tuple[Any, Sequence[str]]
FORMATS = ("MJCF", "URDF")
TIGHT = 100
"""Factor of a tighter solver [-]."""
SETTLING, MOST_STEPS = 1.0, 2000
"""Simulated time [s] and largest number of steps of the settled state."""
UNCOMPARED = (
    "D_ B_ M_ bvh cam_ flex geom_rgba hfield_ light map mat_ mesh_ name n oct_ plugin qLD sensor_ signature site_rgba "
    "skin_ stat tex_ text_ tree_ tuple vis body_bvh body_simple body_weldid body_sameframe geom_sameframe "
    "site_sameframe paths geom_aabb buffer"
)
"""Beginnings of fields that state sizes, offsets, bounding volumes, pictures or flags of optimization."""
_OBJECT = mujoco.mjtObj
_CONTACT, _LIMIT = 5, 3
"""First types of the rows of contacts and of limits in MuJoCo's `mjtConstraint`."""


def read(path: str) -> Any:
    """The compiled model; raises the error of MuJoCo."""
    return mujoco.MjModel.from_xml_path(path)


def sizes(model: Any) -> tuple[int, ...]:
    """Lengths of the arrays of a state: positions, rates, activations, controls."""
    return int(model.nq), int(model.nv), int(model.na), int(model.nu)


def states(model: Any, count: int, rng: Any) -> Iterator[list[Any]]:
    """Positions, rates, activations and controls within the limits; every second state with closed loops."""
    data = mujoco.MjData(model)
    for k in range(count):
        q = np.array(model.key_qpos[0] if model.nkey and k % 2 == 0 else model.qpos0)
        v = rng.normal(size=model.nv)
        mujoco.mj_integratePos(model, q, 0.1 * rng.normal(size=model.nv), 1.0)
        for j in np.flatnonzero(model.jnt_limited):
            if model.jnt_type[j] >= 2:  # a slide or a hinge
                low, high = model.jnt_range[j]
                place = model.jnt_qposadr[j]
                q[place] = np.clip(q[place], low + 0.1 * (high - low), high - 0.1 * (high - low))
        if k // 2 % 2 == 0:  # both with and without the keyframe
            q, v = _closed(model, data, q, v)
        a = rng.uniform(0, 0.5, model.na)
        low, high = np.where(model.actuator_ctrllimited[:, None] != 0, model.actuator_ctrlrange, [-0.3, 0.3]).T
        yield [q, 0.3 * v, a, rng.uniform(low, high)]


def _closed(model: Any, data: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """The pose with the smallest gaps near `q`, by Newton's method, and rates that keep the loops closed."""
    best, least = (q, v), np.inf
    for _ in range(30):
        mujoco.mj_resetData(model, data)
        data.qpos[:] = q
        mujoco.mj_fwdPosition(model, data)
        rows = np.asarray(data.efc_type[: data.nefc]) == 0
        gap, J = np.array(data.efc_pos[: data.nefc])[rows], _jacobian(model, data)[rows]
        if np.linalg.norm(gap) >= least:
            break
        least, pinv = float(np.linalg.norm(gap)), np.linalg.pinv(J, 1e-6)
        best, q = (q, v - pinv @ (J @ v)), q.copy()
        mujoco.mj_integratePos(model, q, -pinv @ gap, 1.0)
    return best


def terms(model: Any, state: Sequence[Any]) -> Mapping[str, Named]:
    """Terms of the equations of motion and one step at a state, in the order in which they follow from each other."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = state
    mujoco.mj_forward(model, data)
    dofs, rows = _dofs(model), list(_rows(model, data))
    actuators, tendons = (
        _names(model, _OBJECT.mjOBJ_ACTUATOR, model.nu),
        _names(model, _OBJECT.mjOBJ_TENDON, model.ntendon),
    )
    found = {
        "M": (_mass_matrix(model, data), dofs),
        "bias": (data.qfrc_bias.copy(), dofs),
        "tendon length": (data.ten_length.copy(), tendons),
        "actuator length": (data.actuator_length.copy(), actuators),
        "passive": (data.qfrc_passive.copy(), dofs),
        "actuator force": (data.actuator_force.copy(), actuators),
        "joint force": (data.qfrc_actuator.copy(), dofs),
        "qacc without constraints": (data.qacc_smooth.copy(), dofs),
        "rows": (np.zeros(0), rows),
        "J": (_jacobian(model, data), rows),
        "aref": (data.efc_aref[: data.nefc].copy(), rows),
        "D": (data.efc_D[: data.nefc].copy(), rows),
        "qacc": (data.qacc.copy(), dofs),
        "qacc, tight": (_tight(model, state), dofs),
    }
    mujoco.mj_step(model, data)
    places = [f"position of {name}" for name in _dofs(model, positions=True)]
    found["step"] = (np.concatenate([data.qpos, data.qvel]), [*places, *(f"rate of {name}" for name in dofs)])
    return found


def _tight(model: Any, state: Sequence[Any]) -> Any:
    """Accelerations with a tighter solver."""
    options = {
        name: getattr(model.opt, name)
        for name in ("tolerance", "ls_tolerance", "iterations", "ls_iterations")
        if hasattr(model.opt, name)
    }
    try:
        for name, value in options.items():
            setattr(model.opt, name, min(TIGHT * value, 5000) if "iterations" in name else value / TIGHT)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = state
        mujoco.mj_forward(model, data)
        return data.qacc.copy()
    finally:
        for name, value in options.items():
            setattr(model.opt, name, value)


def settled(model: Any) -> Any:
    """Positions and rates after one simulated second from the first keyframe."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(min(MOST_STEPS, int(SETTLING / model.opt.timestep))):
        mujoco.mj_step(model, data)
    return np.concatenate([data.qpos, data.qvel])


def fields(model: Any) -> Iterator[tuple[str, Any]]:
    """Numbers of the compiled model and its options."""
    for owner, prefix in ((model, ""), (model.opt, "opt.")):
        for name in dir(owner):
            if name.startswith("_") or (not prefix and name.startswith(tuple(UNCOMPARED.split()))):
                continue
            with contextlib.suppress(Exception):  # an attribute of an old release that has no value
                value = np.asarray(getattr(owner, name))
                if value.dtype.kind in "fiub" and value.size < 200_000:
                    yield prefix + name, value.astype(float)


def _names(model: Any, kind: Any, count: int) -> list[str]:
    return [mujoco.mj_id2name(model, kind, k) or f"{kind.name[6:].lower()} {k}" for k in range(count)]


def _dofs(model: Any, *, positions: bool = False) -> list[str]:
    counts = (7, 4, 1, 1) if positions else (6, 3, 1, 1)
    names: list[str] = []
    for name, kind in zip(_names(model, _OBJECT.mjOBJ_JOINT, model.njnt), model.jnt_type, strict=True):
        names += [name] if counts[kind] == 1 else [f"{name}[{k}]" for k in range(counts[kind])]
    return names


def _rows(model: Any, data: Any) -> Iterator[str]:
    """Names of the constraint rows, those of contacts by their geoms."""
    kinds = {
        0: ("", _OBJECT.mjOBJ_EQUALITY),
        2: ("friction of ", _OBJECT.mjOBJ_TENDON),
        4: ("limit of ", _OBJECT.mjOBJ_TENDON),
    }
    kinds[_LIMIT] = ("limit of ", _OBJECT.mjOBJ_JOINT)
    dofs = _dofs(model)
    for kind, k in zip(data.efc_type[: data.nefc], data.efc_id[: data.nefc], strict=True):
        if kind >= _CONTACT:
            one = data.contact[int(k)]
            names = (
                mujoco.mj_id2name(model, _OBJECT.mjOBJ_GEOM, int(g)) or f"geom {g}" for g in (one.geom1, one.geom2)
            )
            yield "contact " + " - ".join(names)
        elif kind in kinds:
            word, of = kinds[kind]
            yield word + (mujoco.mj_id2name(model, of, int(k)) or f"{of.name[6:].lower()} {k}")
        else:
            yield f"friction of {dofs[k]}"


def _mass_matrix(model: Any, data: Any) -> Any:
    """The full mass matrix, shape (nv, nv); the signature of its function depends on the release."""
    M = np.zeros((model.nv, model.nv))
    if not model.nv:
        return M
    for arguments in ((model, M, getattr(data, "qM", None)), (model, data, M)):
        with contextlib.suppress(TypeError):
            mujoco.mj_fullM(*arguments)
            return M
    mujoco.mj_fullM(model, M, data.M)
    return M


def _jacobian(model: Any, data: Any) -> Any:
    """The Jacobian of the constraint rows, shape (nefc, nv)."""
    if not mujoco.mj_isSparse(model):
        return np.array(data.efc_J).ravel()[: data.nefc * model.nv].reshape(data.nefc, model.nv)
    J, values, columns = np.zeros((data.nefc, model.nv)), np.ravel(data.efc_J), np.ravel(data.efc_J_colind)
    n = data.nefc
    for row, (start, count) in enumerate(zip(data.efc_J_rowadr[:n], data.efc_J_rownnz[:n], strict=True)):
        J[row, columns[start : start + count]] = values[start : start + count]
    return J
