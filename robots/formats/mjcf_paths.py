"""Spatial tendons of a compiled MJCF: their straight parts, their lengths, and the elements that act on them."""

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import WORLD, Coordinate, Joint, PathClosure, Segment

_WRAP = mujoco.mjtWrap
FIXED, SITE, PULLEY = (int(kind) for kind in (_WRAP.mjWRAP_JOINT, _WRAP.mjWRAP_SITE, _WRAP.mjWRAP_PULLEY))
"""Parts of tendons; plain integers, because MuJoCo's enumerations do not equal numpy's integers."""
TENDON = int(mujoco.mjtEq.mjEQ_TENDON)
ON_TENDON = int(mujoco.mjtTrn.mjTRN_TENDON)


def path_of(m: Any, i: int) -> slice:
    """Place in `wrap_*` of the parts of a tendon."""
    return slice(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i])


def is_spatial(m: Any, i: int) -> bool:
    """Whether a tendon passes points instead of adding joint positions."""
    return bool(np.any(m.wrap_type[path_of(m, i)] != FIXED))


def is_straight(m: Any, i: int) -> bool:
    """Whether the parts of a spatial tendon are straight."""
    return bool(np.isin(m.wrap_type[path_of(m, i)], (SITE, PULLEY)).all())


def geoms_of(m: Any, i: int) -> list[str]:
    """Geoms that a spatial tendon wraps around, by name."""
    path = path_of(m, i)
    curved = ~np.isin(m.wrap_type[path], (FIXED, SITE, PULLEY))
    return [m.geom(int(k)).name or f"geom{k}" for k in m.wrap_objid[path][curved]]


def is_actuated(m: Any, i: int) -> bool:
    """Whether an actuator acts on a tendon."""
    return bool(np.any((m.actuator_trntype == ON_TENDON) & (m.actuator_trnid[:, 0] == i)))


def equalities_enabled(m: Any) -> bool:
    """Whether the options of a compiled model enable its equalities."""
    off = mujoco.mjtDisableBit.mjDSBL_EQUALITY | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return not m.opt.disableflags & off


def has_equality(m: Any, i: int, *, of_two: bool = False) -> bool:
    """Whether an active equality acts on a tendon.

    Args:
        of_two: Count equalities of two tendons alone.
    """
    acts = (m.eq_type == TENDON) & (m.eq_active0 != 0) & equalities_enabled(m) & ((m.eq_obj2id >= 0) | (not of_two))
    return bool(np.any(acts & ((m.eq_obj1id == i) | (m.eq_obj2id == i))))


def has_spring(m: Any, i: int) -> bool:
    """Whether a tendon has a spring, a damper or armature."""
    linear = (m.tendon_stiffness, m.tendon_damping, m.tendon_armature, m.tendon_stiffnesspoly, m.tendon_dampingpoly)
    return any(np.any(field[i]) for field in linear) or bool(m.tendon_plasticadr[i] >= 0)


def is_idle(m: Any, i: int) -> bool:
    """Whether a tendon exerts no force, by any route but its limits: it is measured or drawn."""
    return not (has_spring(m, i) or has_equality(m, i) or is_actuated(m, i))


def is_point_spring(m: Any, i: int) -> bool:
    """Whether a spatial tendon is a spring or damper between two points and nothing else."""
    is_line = m.tendon_num[i] == 2 and is_straight(m, i)
    return is_line and has_spring(m, i) and not (m.tendon_armature[i] or is_actuated(m, i) or has_equality(m, i))


def with_slides(m: Any) -> list[int]:
    """Spatial tendons with lengths that are coordinates of the mechanism; they follow its joints in this order.

    All that act, unless they are springs between two points, or are held at a constant length and nothing else.
    """
    return [
        i
        for i in range(m.ntendon)
        if is_spatial(m, i)
        and is_straight(m, i)
        and not is_point_spring(m, i)
        and (has_spring(m, i) or is_actuated(m, i) or has_equality(m, i, of_two=True))
    ]


def slides(m: Any) -> Iterator[Joint]:
    """A slide that moves no body for the length of each such tendon."""
    taken = {m.joint(i).name for i in range(m.njnt)}
    for i in with_slides(m):
        low, high = (float(end) for end in m.tendon_range[i])
        yield Joint(
            name=m.tendon(i).name if m.tendon(i).name not in taken else f"length of tendon {m.tendon(i).name}",
            kind="slide",
            body=WORLD,
            axis=np.array([1.0, 0.0, 0.0]),
            anchor=np.zeros(3),
            rest_position=m.tendon_length0[[i]],
            limits=(low, high) if m.tendon_limited[i] else None,
        )


def coordinate_of(m: Any, i: int) -> Coordinate:
    """The length of a spatial tendon with a slide."""
    place = int(m.njnt) + with_slides(m).index(i)
    return Coordinate(name=m.tendon(i).name, joints=(place,), weights=np.ones(1))


def closure_of(m: Any, i: int, name: str, *, offset: float | None = None) -> PathClosure:
    """The length of a spatial tendon as a closure.

    Args:
        name: Name of the closure.
        offset: Constant length above that of the pose of the file [m]; by default it is the position of its slide.

    Raises:
        MechanismError: If a part has no length in the pose of the file, so that its direction is not defined.
    """
    return PathClosure(
        name=name,
        segments=tuple(_segments(m, i)),
        slide=None if offset is not None else coordinate_of(m, i).joints[0],
        length=float(m.tendon_length0[i]) + offset if offset is not None else 0.0,
    )


def _segments(m: Any, i: int) -> Iterator[Segment]:
    """Straight parts of a spatial tendon: between sites, unless a pulley interrupts the path."""
    path, points = path_of(m, i), _sites(m, m.qpos0).site_xpos
    kinds, ids, divisors = m.wrap_type[path], m.wrap_objid[path], m.wrap_prm[path]
    divisor = 1.0
    for k in range(len(kinds)):
        if kinds[k] == PULLEY:
            divisor = float(divisors[k])
        elif k and kinds[k - 1] == SITE:
            first, second = int(ids[k - 1]), int(ids[k])
            bodies = [int(m.site_bodyid[site]) for site in (first, second)]
            if len({int(m.body_weldid[body]) for body in bodies}) == 1 and (points[first] == points[second]).all():
                continue
            if (points[first] == points[second]).all():
                names = " and ".join(f"'{m.site(site).name or f'site{site}'}'" for site in (first, second))
                raise MechanismError(
                    f"spatial tendon '{m.tendon(i).name}': sites {names} must be apart in the pose of the file, got "
                    "the same point, where the tendon has no direction"
                )
            yield Segment(
                body1=bodies[1] - 1,  # MuJoCo counts the world as body 0
                point1=m.site_pos[second],
                body2=bodies[0] - 1,
                point2=m.site_pos[first],
                divisor=divisor,
            )


def lengths_at(m: Any, q: JointPositions) -> Array:
    """Lengths of the tendons with slides [m], shape (slides,).

    Args:
        m: Compiled model.
        q: Positions of the joints of the file.
    """
    return np.array(_sites(m, q).ten_length)[with_slides(m)]


def _sites(m: Any, q: JointPositions) -> Any:
    """MuJoCo's data with the places of sites and the lengths of tendons."""
    data = mujoco.MjData(m.plain)
    data.qpos[:] = q
    mujoco.mj_kinematics(m.plain, data)
    mujoco.mj_comPos(m.plain, data)
    mujoco.mj_tendon(m.plain, data)
    return data
