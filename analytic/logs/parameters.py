"""Fit of friction, masses, offsets and a time shift to a residual: estimates with intervals and physical bounds.

Generalized least squares (Aitken 1935) with the correlation of the filtered noise; the intervals of plain least squares
miss the truth more often than not. Friction is at least 0, and a mass at least 0 in total: without bounds, a negative
mass explains efforts of zero. Estimates at a bound come from non-negative least squares (Lawson and Hanson 1974).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.logs.closing.closed_log import ClosedLog
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.evaluation import Slopes, efforts_of_states, slopes
from loopcheck.analytic.logs.residual import Residual, acting_after, at_rows
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import NotFoundError, ShapeError
from loopcheck.robots.mechanism import Mechanism

FRICTION, SHIFT, OFFSET, MASS = "friction", "shift", "offset", "mass:"
"""Parameters that can be fitted: the friction of all drives, the time of the efforts, an offset of each effort, or the
mass of a body, as `mass:BODY`."""
SURE = 1.96
"""Half width of an interval that has the truth in 95 % of all logs, over the standard deviation [-]."""
SAMPLES = 200
"""Largest number of fitted samples [-]; samples between them are correlated with them and add little."""
APART = 4
"""Samples that are fitted within the reach of the filter [-]."""
ALIKE = 0.99
"""Correlation of two estimates above which they are indistinguishable [-]."""
ROUGH = 0.05
"""Independent part of the noise beside the correlated part [-], for its limited knowledge."""
CHANCE = 3.0
"""Excess over the expected noise within which the remaining residual is noise, in standard deviations [-]."""
ROUNDED = 1e-9
"""Rate of a drive at rest, over its largest rate [-]: round-off of filters and loops, below any measured rate."""
AT_REST = 1e-9
"""Motion of a drive at rest [m or rad]: round-off of its positions."""
FEWEST = 10
"""Samples to fit at least [-]."""
BY_CHANCE = 3.0
"""Standard deviations by which noise alone moves the unbounded estimate of zero friction below 0 [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something that may explain a residual."""

    name: str
    """Name of the parameter, as `Coulomb friction of hip`."""
    unit: str
    effect: Array
    """Residual that it makes per unit [N or N m per unit], shape (n, na)."""
    model: float = 0.0
    """Value in the model, to which the parameter is added [unit]; their sum is at least 0. Infinite without a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A parameter as fitted."""

    name: str
    unit: str
    value: float
    """Change of the model, within the bounds [unit]."""
    half_width: float
    """Of the 95 % interval of the unbounded estimate [unit]."""
    unbounded: float
    """Estimate without bounds [unit]."""
    model: float
    """Value in the model [unit]; 0 for friction, infinite without a bound."""
    alike: str = ""
    """Another parameter with indistinguishable effect in this log."""

    @property
    def is_seen(self) -> bool:
        """Whether the interval leaves zero out."""
        return abs(self.value) > self.half_width

    @property
    def is_unphysical(self) -> bool:
        """Whether the estimate is at its bound, except friction at 0 within the chance of noise."""
        chance = BY_CHANCE / SURE * self.half_width
        return self.value <= -self.model and (self.model > 0 or -self.unbounded > chance)

    def __str__(self) -> str:
        alike = f", indistinguishable from the {self.alike}" if self.alike else ""
        unseen = "" if self.is_seen or alike else ", indistinguishable from zero"
        share = f" ({self.value / self.model:+.2g} of the mass in the model)" if 0 < self.model < np.inf else ""
        at_bound = f", at its bound: without bounds {self.unbounded:.4g} {self.unit}" if self.is_unphysical else ""
        return f"{self.name} {self.value:+.4g} ± {self.half_width:.2g} {self.unit}{share}{alike or unseen}{at_bound}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Parameters as fitted."""

    estimates: tuple[Estimate, ...]
    before: Residual
    """Explained part, at the samples with a known effect."""
    after: Residual
    """Remaining part."""


def fit(closed: ClosedLog, residual: Residual, what: Sequence[str], derivatives: Slopes | None = None) -> Fit:
    """Fit parameters to a residual.

    Args:
        what: `friction`, `mass:BODY`.
        derivatives: Of the residual at the samples of `fitted_rows`, if they are known already.

    Raises:
        NotFoundError: If one is unknown; the message lists the known ones.
        ShapeError: If the log is too short.
    """
    rows, kept = _known_rows(closed, residual), fitted_rows(closed, residual)
    certain = ~_reversals(_acting_rates(closed, residual)) if FRICTION in what else np.ones(len(residual.bases), bool)
    if certain[kept].sum() < FEWEST:
        raise ShapeError(
            f"log '{closed.log.name}': a fit must have at least {FEWEST} independent samples, got {certain[kept].sum()}"
        )
    terms = [parameter for name in what for parameter in parameters(closed, residual, name)]
    if derivatives is None:
        derivatives = fitted_slopes(closed, residual)
    effects = np.stack([parameter.effect for parameter in terms], axis=-1)  # (n, na, terms)
    covariance = noise_covariance(closed, residual, kept, derivatives)
    least = -np.array([parameter.model for parameter in terms])
    used = np.repeat(certain[kept], closed.mechanism.na)
    values, unbounded, deviations, correlation = _least_squares(
        residual.residual[kept].ravel()[used],
        effects[kept].reshape(-1, len(terms))[used],
        covariance[np.ix_(used, used)],
        least,
    )
    np.fill_diagonal(correlation, 0)
    estimates = [
        Estimate(
            name=parameter.name,
            unit=parameter.unit,
            value=float(values[k]),
            half_width=SURE * float(deviations[k]),
            unbounded=float(unbounded[k]),
            model=parameter.model,
            alike=terms[int(np.abs(correlation[k]).argmax())].name if np.abs(correlation[k]).max() > ALIKE else "",
        )
        for k, parameter in enumerate(terms)
    ]
    rows = rows[certain[rows]]
    before = at_rows(residual, rows)
    return Fit(
        estimates=tuple(estimates),
        before=before,
        after=replace(before, needed=before.needed + (effects @ values)[rows]),
    )


def known_parameters(mechanism: Mechanism) -> list[str]:
    """Names of everything that can be fitted."""
    return [FRICTION, SHIFT, OFFSET, *(f"{MASS}{body.name}" for body in mechanism.bodies)]


def want_parameters(names: Iterable[str], mechanism: Mechanism) -> None:
    """Check the names of parameters to fit.

    Raises:
        NotFoundError: If one is unknown; the message lists the known names.
    """
    for name in names:
        if name not in (known := known_parameters(mechanism)):
            raise NotFoundError("parameter to fit", name, known)


def fitted_rows(closed: ClosedLog, residual: Residual) -> AnyArray:
    """Numbers of the samples of a residual that are fitted, few enough not to repeat each other [-], shape (n,)."""
    rows = _known_rows(closed, residual)
    stride = max(1, residual.filter.reach // APART, -(-len(rows) // SAMPLES))
    return rows[::stride]


def fitted_slopes(closed: ClosedLog, residual: Residual) -> Slopes:
    """Derivatives of a residual at the samples of `fitted_rows`, common to all fits."""
    return slopes(closed, _states(residual, fitted_rows(closed, residual)))


def noise_covariance(closed: ClosedLog, residual: Residual, rows: AnyArray, derivatives: Slopes) -> Array:
    """Covariance of a residual by the noise of the log's columns, through the filter and the equations.

    Args:
        rows: Numbers of samples of the residual [-], shape (m,).
        derivatives: Of the residual at these samples.

    Returns:
        Covariance of all actuators at the first sample, then at the next [(N or N m)²], shape (m na, m na).
    """
    kernels, bases = residual.filter, residual.bases[rows].astype(int)
    first = bases[0] - kernels.reach
    span = bases[-1] + kernels.reach + 1 - first
    spread = kernels.spread(kernels.reach)
    maps = np.zeros((4, len(rows), span))  # of the noise of a column to position, velocity, acceleration and effort
    for row, base in enumerate(bases):
        maps[:, row, base - kernels.reach - first : base + kernels.reach + 1 - first] = spread
    na = closed.mechanism.na
    covariance = np.zeros((len(rows) * na, len(rows) * na))
    positions, velocities = closed.deviations
    groups = [([0], positions), ([1, 2], velocities)] if kernels.uses_velocities else [([0, 1, 2], positions)]
    for orders, deviations in groups:
        for column, deviation in enumerate(deviations):
            slope = derivatives.motion[:, :, orders, column]
            effect = np.einsum("mao,oms->mas", slope, maps[orders]).reshape(len(rows) * na, span)
            covariance += deviation**2 * effect @ effect.T
    for actuator, deviation in enumerate(closed.effort_deviations):
        effect = np.einsum("ma,ms->mas", derivatives.effort[:, :, actuator], maps[3]).reshape(len(rows) * na, span)
        covariance += deviation**2 * effect @ effect.T
    floor = residual.floor
    independent = (ROUGH * floor.noise) ** 2 + floor.truncation**2 + floor.reference**2
    covariance[np.diag_indices_from(covariance)] += np.tile(independent, len(rows))
    return covariance


def _least_squares(left: Array, effects: Array, covariance: Array, least: Array) -> tuple[Array, Array, Array, Array]:
    """Estimates at or above the least values, unbounded estimates, their standard deviations and correlations.

    Where the unbounded estimates leave more than noise can, deviations are larger in proportion: a term is missing.
    """
    L = np.linalg.cholesky(covariance)
    y, A = np.linalg.solve(L, left), np.linalg.solve(L, effects)
    sizes = np.maximum(np.linalg.norm(A, axis=0), np.finfo(float).tiny)
    inverse = np.linalg.pinv(A / sizes)
    unbounded = inverse @ y / sizes
    spare = max(len(y) - len(unbounded), 1)
    excess = float(((y - A @ unbounded) ** 2).sum()) / spare
    excess = excess if excess > 1 + CHANCE * np.sqrt(2 / spare) else 1.0
    scatter = inverse @ inverse.T
    own = np.sqrt(np.diag(scatter))
    values = unbounded
    if (values < least).any():
        from scipy.optimize import nnls

        free = np.isinf(least)  # the difference of two numbers that are at least 0
        bounds = np.where(free, 0.0, least)
        found = nnls(np.hstack([A, -A[:, free]]) / np.r_[sizes, sizes[free]], y - A @ bounds)[0]
        values = found[: len(sizes)]
        values[free] -= found[len(sizes) :]
        values = bounds + values / sizes
    own = np.maximum(own, np.finfo(float).tiny)  # of a term without effect
    return values, unbounded, np.sqrt(excess) * own / sizes, scatter / own / own[:, None]


def parameters(closed: ClosedLog, residual: Residual, name: str) -> Iterator[Parameter]:
    """The parameters of a term.

    Args:
        residual: Residual at consecutive samples; at any samples for masses.
        name: Name of the term, as in `known_parameters`.

    Raises:
        NotFoundError: If there is no such term.
    """
    mechanism = closed.mechanism
    bodies = [body.name for body in mechanism.bodies]
    if name == FRICTION:
        yield from _friction(closed, residual)
    elif name == SHIFT:
        rate = np.gradient(residual.needed, residual.motion.t, axis=0, edge_order=2)
        yield Parameter(name="time of the efforts after that of the motion", unit="s", effect=-rate, model=np.inf)
    elif name == OFFSET:
        yield from _offsets(closed, residual)
    elif name.startswith(MASS) and name.removeprefix(MASS) in bodies:
        yield _mass(closed, residual, name.removeprefix(MASS))
    else:
        want_parameters([name], mechanism)


def _friction(closed: ClosedLog, residual: Residual) -> Iterator[Parameter]:
    """Coulomb and viscous friction of each drive, given by its first actuator, through the filter of the efforts."""
    mechanism = closed.mechanism
    rates = _acting_rates(closed, residual)
    moving = closed.moving(_states(residual, np.arange(len(residual.bases))))
    firsts = [
        next(a for a, actuator in enumerate(mechanism.actuators) if actuator.coordinate == drive)
        for drive in mechanism.drives
    ]
    for place, (drive, actuator) in enumerate(zip(mechanism.drives, firsts, strict=True)):
        unit = mechanism.effort_unit(drive)
        per_rate = "N m s/rad" if unit == "N m" else "N s/m"
        for kind, of_unit, effort in (("Coulomb", unit, np.sign(rates)), ("viscous", per_rate, rates)):
            efforts = np.zeros((len(rates), mechanism.na))
            efforts[:, actuator] = effort[:, place] / mechanism.actuators[actuator].gear
            effect = (moving @ _filtered(residual, efforts)[..., None])[..., 0]
            yield Parameter(name=f"{kind} friction of {drive.name}", unit=of_unit, effect=effect)


def _offsets(closed: ClosedLog, residual: Residual) -> Iterator[Parameter]:
    """A constant added to the effort of each actuator."""
    moving = closed.moving(_states(residual, np.arange(len(residual.bases))))
    for k, actuator in enumerate(closed.mechanism.actuators):
        effect = np.broadcast_to(moving[:, :, k], residual.needed.shape)
        unit = closed.mechanism.actuator_units[k]
        yield Parameter(name=f"offset of {actuator.name}", unit=unit, effect=effect, model=np.inf)


def _acting_rates(closed: ClosedLog, residual: Residual) -> Array:
    """Rates of the drives when the effort of each base sample acted [m/s or rad/s], shape (n, drives)."""
    rates = residual.motion.qd @ closed.mechanism.rates_of(closed.mechanism.drives).T
    span = float(residual.motion.t[-1] - residual.motion.t[0])
    rates = rates * (np.abs(rates).max(axis=0) * span > AT_REST)
    after = acting_after(residual.effort_time, closed.log.dt)
    late = (0.5 if after is None else after) - residual.filter.late
    following = np.concatenate([rates[1:], rates[-1:]])
    return rates + late * (following - rates)


def _reversals(rates: Array) -> AnyArray:
    """Mask of the samples with a moving drive at rest up to round-off: Coulomb friction has no direction there."""
    size = np.abs(rates).max(axis=0, initial=0.0)
    return ((np.abs(rates) <= ROUNDED * size) & (size > 0)).any(axis=1)


def _known_rows(closed: ClosedLog, residual: Residual) -> AnyArray:
    """Numbers of the samples whose filter reaches no effort beyond those of the samples [-], shape (n,)."""
    kernel, samples = residual.filter.effort, len(residual.bases)
    return np.arange(max(-kernel.begin, 0), samples - max(kernel.end, 0))


def _filtered(residual: Residual, efforts: Array) -> Array:
    """Efforts of the base samples (n, na) through the filter; zero where it reaches beyond them."""
    kernel, n = residual.filter.effort, len(efforts)
    before, after = max(-kernel.begin, 0), max(kernel.end, 0)
    padded = np.concatenate([np.zeros((before, efforts.shape[1])), efforts, np.zeros((after, efforts.shape[1]))])
    return kernel.applied(padded, np.arange(before, before + n, 1.0))


def _mass(closed: ClosedLog, residual: Residual, body: str) -> Parameter:
    """A mass at the mass centre of a body."""
    states = _states(residual, np.arange(len(residual.bases)))
    (mass,) = (b.mass for b in closed.mechanism.bodies if b.name == body)
    heavier, same = (
        efforts_of_states(m, states) for m in (closed.mechanism.with_mass(body, mass + 1.0), closed.mechanism)
    )
    return Parameter(name=f"mass of {body}", unit="kg", effect=heavier - same, model=mass)


def _states(residual: Residual, rows: AnyArray) -> States:
    return States(q=residual.motion.q, qd=residual.motion.qd, qdd=residual.motion.qdd).rows(rows)
