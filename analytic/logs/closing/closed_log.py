"""A log seen as motion of a mechanism: its columns put in the order of the robot, filtered, and put on the closures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from loopcheck.analytic.dynamics.noc import NeededEfforts, needed_efforts
from loopcheck.analytic.dynamics.powers import scale_of
from loopcheck.analytic.kinematics.continuation import ClosedPose, Tracer, close
from loopcheck.analytic.kinematics.redundancy import mixed_drives, moving_part, undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.logs.closing.closed_motion import States, closed_states, drive_of, nearest_poses, widest_gap
from loopcheck.analytic.logs.closing.lengths import with_lengths
from loopcheck.analytic.logs.closing.turns import differenced, spins_about_itself, without_spin
from loopcheck.analytic.logs.signals.filters import Filter
from loopcheck.analytic.logs.signals.noise import noise, rounding
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.analytic.motion.units import with_plausible_units
from loopcheck.robots.arrays import AccelerationSeries, Array, Efforts, EffortSeries, Times, want_equal_steps
from loopcheck.robots.errors import LoopClosureError, MechanismError, NotFoundError
from loopcheck.robots.log import EQUAL, FEWEST, Log
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Drive, Motion

if TYPE_CHECKING:
    from scipy.interpolate import BSpline, CubicSpline, PPoly

MOST_OPEN = 0.1
"""Largest loop gap of a log of this robot, over its size or one radian [-]: soft loops open by a part of this."""
COARSE = 200
"""Most samples of a log of the drives that are assembled in sequence [-]; poses between them are near enough."""
LOOKED_AT = 500
"""Samples examined for singularities [-]."""


@dataclass(frozen=True, kw_only=True, eq=False)  # without slots: its noise is kept in its dictionary
class ClosedLog:
    """A log in the order of a mechanism."""

    is_of_efforts: ClassVar[bool] = True
    """Whether the columns `effort` are efforts of the actuators."""

    log: Log
    mechanism: Mechanism
    drives: tuple[Coordinate, ...]
    """Coordinates kept as logged: independent drives, or combinations of redundant drives."""
    unactuated: int
    """Degrees of freedom that no actuator moves."""
    q: Array
    """Positions of all joints, or of the drives if some joints are not logged [m or rad], shape (nt, nq or drives)."""
    qd: Array | None
    """Velocities of the same, if they are logged [m/s or rad/s], shape (nt, nv or drives)."""
    effort: Array
    """Efforts in the order of the mechanism's actuators [N or N m], shape (nt, na)."""
    nearby: "CubicSpline | None"
    """Approximate joint positions [m or rad] at a time [s], for a log of the drives only."""
    gap: float
    """Largest loop gap as logged [m or rad]; NaN for a log of the drives only."""
    gap_time: float
    """When it was so wide [s]."""
    q_error: Array
    """Errors of the positions that their noise does not show [m or rad], shape (nq or drives,)."""
    qd_error: Array
    """The same of the velocities [m/s or rad/s], shape (nv or drives,); 0 without velocities."""
    effort_error: Array
    """The same of the efforts [N or N m], shape (na,)."""
    exact: bool = False
    """Whether a program computed all columns; alternating values are then motion, not noise."""

    def needed(self, state: State, qdd: AccelerationSeries) -> NeededEfforts:
        """Values of the columns `effort` that the equations need in closed states."""
        return needed_efforts(state, qdd)

    def moving(self, states: States) -> Array:
        """The projector on efforts that move the robot: the identity for a robot without redundant actuators.

        Returns:
            Π [ratios of the units of the efforts], shape (n, na, na).
        """
        mechanism, n = self.mechanism, len(states.q)
        if mechanism.na <= len(self.drives):
            return np.broadcast_to(np.eye(mechanism.na), (n, mechanism.na, mechanism.na))
        Pi = moving_part(mechanism, as_motion(mechanism, np.arange(float(n)), states))
        return np.eye(mechanism.na)[None] if Pi is None else Pi

    def scale(self, state: State, qdd: AccelerationSeries) -> Efforts:
        """Scale of the errors of each column `effort` [N or N m], shape (na,)."""
        return scale_of(state, qdd).scale

    def size(self, needed: EffortSeries) -> Efforts:
        """Size of each column `effort` beside which its errors count [N or N m], shape (na,)."""
        return np.sqrt((needed**2).mean(axis=0))

    @property
    def directions(self) -> Array:
        """Joint velocities by which the noise of a column moves the robot [-], shape (columns, nv)."""
        mechanism = self.mechanism
        if self.nearby is not None:
            W = mechanism.rates_of(self.drives)
            return W / (W**2).sum(axis=1, keepdims=True)
        return np.eye(mechanism.nv)[self._dofs]

    @cached_property
    def effort_deviations(self) -> Array:
        """Noise of the efforts [N or N m], shape (na,)."""
        return self._noise(self.effort, self.effort_error)

    @cached_property
    def deviations(self) -> tuple[Array, Array]:
        """Noise of positions [m or rad] and velocities [m/s or rad/s] along `directions`, each of shape (columns,)."""
        of_rates = np.zeros(0) if self.qd is None else self._noise(self.qd, self.qd_error)
        if self.nearby is not None:
            return self._noise(self.q, self.q_error), of_rates if of_rates.size else np.zeros(self.q.shape[1])
        of_positions = self._noise(self.q, self.q_error)
        of_dofs = np.zeros(self.mechanism.nv)
        for joint, columns, dofs in zip(
            self.mechanism.joints, self.mechanism.q_slices, self.mechanism.dof_slices, strict=True
        ):
            values = of_positions[columns]
            turned = 2 * np.sqrt(np.mean(values[-4:] ** 2))  # a quaternion turns half as fast as the body
            of_dofs[dofs] = {"ball": [turned] * 3, "free": [*values[:3], *[turned] * 3]}.get(joint.kind, values)
        return of_dofs[self._dofs], (of_rates if of_rates.size else np.zeros(self.mechanism.nv))[self._dofs]

    def _noise(self, values: Array, error: Array) -> Array:
        return np.hypot(rounding(values) if self.exact else noise(values), error)

    @property
    def _dofs(self) -> list[int]:
        """The dofs with relevant columns: those of the independent drives, or all dofs if some are not actuated."""
        if self.unactuated:
            return list(range(self.mechanism.nv))
        joints = sorted({j for drive in self.drives for j in drive.joints})
        return [self.mechanism.dof_slices[j].start for j in joints]

    def filtered(self, parts: Sequence[tuple[Filter, Array]]) -> tuple[States, Array]:
        """Closed states, and the largest move of a joint that put each there [m or rad], shape (n,).

        Args:
            parts: Filters, with the numbers of their base samples [-], shape (any,).
        """
        x, v, a = (
            np.concatenate(several) for several in zip(*(self._motion(one, bases) for one, bases in parts), strict=True)
        )
        if self.nearby is None:
            near = States(q=_normalized(self.mechanism, x), qd=v, qdd=a)
            states = closed_states(self.mechanism, self.drives, drive_of(self.mechanism, self.drives, near), near)
            return states, np.abs(states.q - near.q).max(axis=1, initial=0.0)
        t = np.concatenate([self.log.t[0] + self.log.dt * (bases + one.late) for one, bases in parts])
        still = np.zeros((len(t), self.mechanism.nv))
        near = States(q=self.nearby(t), qd=still, qdd=still)
        states = closed_states(self.mechanism, self.drives, Drive(q=x, qd=v, qdd=a), near)
        if self.unactuated:  # spins, which are not logged
            qd = without_spin(states.kinematics_of(self.mechanism))
            near = States(q=states.q, qd=qd, qdd=states.qdd)
            states = closed_states(self.mechanism, self.drives, Drive(q=x, qd=v, qdd=a), near)
        return states, np.full(len(t), np.nan)

    def _motion(self, kernels: Filter, bases: Array) -> tuple[Array, Array, Array]:
        """Filtered positions, velocities and accelerations, each of shape (n, any)."""
        if self.nearby is None and self.qd is None and self.mechanism.nq != self.mechanism.nv:
            return differenced(self.mechanism, self.q, kernels, bases)
        return kernels.motion(self.q, self.qd, bases)


def closed_log(mechanism: Mechanism, log: Log, guess: Array, alike: ClosedLog | None = None) -> ClosedLog:
    """A log in the order of a mechanism, after checks that it fits.

    Args:
        guess: Joint positions near those at the first time [m or rad], shape (nq,); logged joints replace them.
        alike: A log of the same columns, already searched for singularities: of all joints along the same motion or
            more of it, of the drives through the same positions at any times.

    Raises:
        NotFoundError: If a joint or an actuator of the log is unknown; the message lists the valid names.
        MechanismError: If the log lacks an actuator's effort or a drive's motion.
        LoopClosureError: If the loops are open by more than a log of this robot can explain.
        SingularityError: If the motion meets a singularity; `time` is its time.
    """
    if not log.has_equal_steps:
        want_equal_steps(log.t, name=f"{log.name}, t", fewest=FEWEST, unequal=EQUAL)
    log = with_lengths(mechanism, log)
    effort = (log.effort + log.unmodelled)[:, _places(mechanism, log)]
    names = [joint.name for joint in mechanism.joints]
    tendons = [drive.name for drive in mechanism.drives if not drive.is_joint]
    for name in log.joints:
        if name not in names and name not in tendons:
            raise NotFoundError(f"joint of {mechanism.model.path.name} in log '{log.name}'", name, [*names, *tendons])
    if set(names) <= set(log.joints):
        return _full(mechanism, log, effort, alike)
    return _of_drives(mechanism, log, effort, guess, alike)


def as_motion(mechanism: Mechanism, t: Times, states: States) -> Motion:
    """Closed states as a motion; its drives move by polynomials between them."""
    from scipy.interpolate import make_interp_spline

    drive = drive_of(mechanism, mechanism.drives, states)
    law = partial(_along, make_interp_spline(t, drive.q, k=min(5, len(t) - 1)))
    q = states.q[0]
    return Motion(
        t=t,
        q=states.q,
        qd=states.qd,
        qdd=states.qdd,
        law=law,
        assemble=partial(assemble, mechanism, law, q),
    )


def _full(mechanism: Mechanism, log: Log, effort: Array, alike: ClosedLog | None) -> ClosedLog:
    """A log of all joints."""
    columns = [log.columns_of(joint.name) for joint in mechanism.joints]
    for joint in mechanism.joints:
        kind = log.kinds[log.joints.index(joint.name)]
        if (kind in ("ball", "free") or joint.kind in ("ball", "free")) and kind != joint.kind:
            raise MechanismError(f"log '{log.name}', joint '{joint.name}': kind must be {joint.kind}, got {kind}")
    q = _continued(mechanism, np.concatenate([log.q[:, positions] for positions, _ in columns], axis=1))
    qd = None if log.qd is None else np.concatenate([log.qd[:, dofs] for _, dofs in columns], axis=1)
    gap = widest_gap(mechanism, q)
    if gap.relative > MOST_OPEN:
        most = MOST_OPEN * gap.value / gap.relative
        base = "of the size of the robot" if gap.unit == "m" else "of one radian"
        raise LoopClosureError(
            f"log '{log.name}': loops of {mechanism.model.path.name} must be closed to {most:.3g} {gap.unit} "
            f"({100 * MOST_OPEN:g} % {base}), got a gap of {gap.value:.3g} {gap.unit} at t = {log.t[gap.sample]:g} s, "
            f"closure '{gap.closure}'{_suspected_units(mechanism, q)}",
            residual=gap.value,
            tolerance=most,
            time=float(log.t[gap.sample]),
        )
    if alike is None:
        # rows that are redundant where the loops are closed are none beside it, and would hold dofs that are free
        middle = close(mechanism, q[[len(q) // 2]], np.ones(mechanism.nv, dtype=bool))[0][0]
        (drives, _), unactuated = mixed_drives(mechanism, middle), undriven_dofs(mechanism, middle)
    else:
        drives, unactuated = alike.drives, alike.unactuated
    closed = ClosedLog(
        log=log,
        mechanism=mechanism,
        drives=drives,
        unactuated=unactuated,
        q=q,
        qd=qd,
        effort=effort,
        nearby=None,
        gap=gap.value,
        gap_time=float(log.t[gap.sample]),
        q_error=np.concatenate([log.error_of("q")[positions] for positions, _ in columns]),
        qd_error=np.zeros(mechanism.nv)
        if log.qd is None
        else np.concatenate([log.error_of("qd")[dofs] for _, dofs in columns]),
        effort_error=log.error_of("effort")[_places(mechanism, log)],
    )
    if alike is None:
        _refuse_singularities(closed)
    return closed


def _suspected_units(mechanism: Mechanism, q: Array) -> str:
    """Other units in which positions (nt, nq) close the loops, as a clause; empty if there are no such units."""
    few = q[:: max(len(q) // COARSE, 1)].copy()
    angles, lengths = (
        [
            columns.start
            for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True)
            if joint.kind == kind
        ]
        for kind in ("hinge", "slide")
    )
    units = (
        (np.pi / 180, angles, "angles in degrees", 'angle = "deg"', np.pi),
        (1e-3, lengths, "lengths in mm", 'length = "mm"', 0.0),
    )
    for factor, columns, words, unit, least in units:
        is_large = np.abs(few[:, columns]).max(initial=0.0) > least  # less is near the rest position, which is closed
        few[:, columns] *= factor
        if is_large and widest_gap(mechanism, few).relative < MOST_OPEN:
            return f". With {words} the loops are closed: units = {{ {unit} }} in its description"
    return ""


def _of_drives(mechanism: Mechanism, log: Log, effort: Array, guess: Array, alike: ClosedLog | None) -> ClosedLog:
    """A log of the drives, and perhaps of a few more joints, which do not count."""
    from scipy.interpolate import CubicSpline

    drives = mechanism.drives
    q = np.stack([_of_drive(mechanism, log, drive, log.q, 0) for drive in drives], axis=1)
    qd = None
    if log.qd is not None:
        qd = np.stack([_of_drive(mechanism, log, drive, log.qd, 1) for drive in drives], axis=1)
    coarse = np.unique(np.linspace(0, len(log.t) - 1, min(COARSE, len(log.t))).astype(int))
    law = partial(_along, CubicSpline(log.t, q))
    where = f"log '{log.name}' of {mechanism.model.path.name}"
    kept, weights = mixed_drives(mechanism, guess)
    if alike is not None and alike.nearby is not None:
        poses = alike.nearby(alike.log.t[coarse])
    else:
        poses = with_plausible_units(
            mechanism,
            law,
            log.t[coarse],
            lambda law: _poses_along(
                Tracer(mechanism=mechanism, law=partial(_mixed, law, weights), drives=kept, where=where),
                guess,
                log.t[coarse],
            ),
            f"Declare in {log.name}.toml: units.angle = 'deg'",
        ).q
    closed = ClosedLog(
        log=log,
        mechanism=mechanism,
        drives=kept,
        unactuated=undriven_dofs(mechanism, poses[len(coarse) // 2]),
        q=q @ weights.T,
        qd=None if qd is None else qd @ weights.T,
        effort=effort,
        nearby=CubicSpline(log.t[coarse], poses),
        gap=np.nan,
        gap_time=np.nan,
        q_error=_error_of_drives(mechanism, log, "q", weights),
        qd_error=_error_of_drives(mechanism, log, "qd", weights),
        effort_error=log.error_of("effort")[_places(mechanism, log)],
    )
    if closed.unactuated and not spins_about_itself(mechanism, poses[len(coarse) // 2]):
        raise MechanismError(
            f"{where}: must contain all joints (qpos.0 ..., and qvel.0 ... if known), because {closed.unactuated} "
            f"degrees of freedom are unactuated; got {', '.join(log.joints)}"
        )
    return closed


def _poses_along(tracer: Tracer, guess: Array, t: Times) -> Motion:
    """Motion along a law; bodies that spin about themselves follow it with as little motion as possible."""
    mechanism = tracer.mechanism
    if undriven_dofs(mechanism, guess):
        start = tracer.start(guess, float(t[0])).q
        if spins_about_itself(mechanism, start[0]):
            targets = tracer.law(t).q
            q = nearest_poses(mechanism, tracer.drives, targets, start)
            still = np.zeros((len(t), mechanism.nv))
            return as_motion(mechanism, t, States(q=q, qd=still, qdd=still))
    return assemble(mechanism, tracer.law, guess, t, drives=tracer.drives, where=tracer.where)


def _places(mechanism: Mechanism, log: Log) -> list[int]:
    """Places of the mechanism's actuators in the log."""
    names = [actuator.name for actuator in mechanism.actuators]
    for name in log.actuators:
        if name not in names:
            raise NotFoundError(f"actuator of {mechanism.model.path.name} in log '{log.name}'", name, names)
    missing = [name for name in names if name not in log.actuators]
    if missing:
        raise MechanismError(
            f"log '{log.name}': must contain the effort of every actuator, missing: {', '.join(missing)}"
        )
    return [log.actuators.index(name) for name in names]


def _of_drive(mechanism: Mechanism, log: Log, drive: Coordinate, values: Array, which: int) -> Array:
    """A drive's own column, or for a tendon the sum of the columns of its joints."""
    joints = [mechanism.joints[j].name for j in drive.joints]
    if drive.name in log.joints and (drive.is_joint or drive.name not in [j.name for j in mechanism.joints]):
        return values[:, log.columns_of(drive.name)[which].start]
    missing = [name for name in joints if name not in log.joints]
    if missing:
        raise MechanismError(f"log '{log.name}': must contain the motion of every drive, missing: {', '.join(missing)}")
    return np.stack([values[:, log.columns_of(name)[which].start] for name in joints], axis=1) @ drive.weights


def _error_of_drives(mechanism: Mechanism, log: Log, name: str, weights: Array) -> Array:
    """Errors of combinations (drives, drives) of the drives that the noise of their columns does not show, at most."""
    if name not in log.errors:
        return np.zeros(len(weights))
    which = 0 if name == "q" else 1
    errors = np.stack([_of_drive(mechanism, log, drive, log.errors[name][None], which) for drive in mechanism.drives])
    return np.abs(weights) @ np.abs(errors[:, 0])


def _refuse_singularities(closed: ClosedLog) -> None:
    """Raise if the drives do not determine the motion somewhere."""
    from scipy.interpolate import CubicSpline

    if closed.unactuated or not closed.mechanism.closures:
        return
    log, mechanism, drives = closed.log, closed.mechanism, closed.drives
    few = np.unique(np.linspace(0, len(log.t) - 1, min(LOOKED_AT, len(log.t))).astype(int))
    near = States(q=closed.q[few], qd=np.zeros((len(few), mechanism.nv)), qdd=np.zeros((len(few), mechanism.nv)))
    q = closed_states(mechanism, drives, drive_of(mechanism, drives, near), near).q
    law = partial(_along, CubicSpline(log.t[few], mechanism.values_of(drives, q)))
    where = f"log '{log.name}' of {mechanism.model.path.name}"
    tracer = Tracer(mechanism=mechanism, law=law, drives=drives, where=where)
    tracer.refuse_singularities(
        [ClosedPose(t=float(t), q=q[[k]]) for k, t in enumerate(log.t[few])], tracer.dependent_jacobian(q)
    )


def _along(curve: "PPoly | BSpline", t: Array) -> Drive:
    q, qd, qdd = (np.asarray(curve(t, order)) for order in range(3))
    return Drive(q=q, qd=qd, qdd=qdd)


def _mixed(law: Callable[[Array], Drive], weights: Array, t: Array) -> Drive:
    return Drive(*(values @ weights.T for values in law(t)))


def _continued(mechanism: Mechanism, q: Array) -> Array:
    """Positions (nt, nq) with quaternions that do not change their sign on the way."""
    continued = q.copy()
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind in ("ball", "free"):
            turns = continued[:, columns][:, -4:]
            flips = np.cumprod(np.where((turns[1:] * turns[:-1]).sum(axis=1) < 0, -1.0, 1.0))
            turns[1:] *= flips[:, None]
    return _normalized(mechanism, continued)


def _normalized(mechanism: Mechanism, q: Array) -> Array:
    """Positions (n, nq) with quaternions of length one."""
    unit = q.copy()
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind in ("ball", "free"):
            unit[:, columns.stop - 4 : columns.stop] /= np.linalg.norm(
                q[:, columns.stop - 4 : columns.stop], axis=1, keepdims=True
            )
    return unit
