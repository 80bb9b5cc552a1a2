"""The array type of loopcheck, and the check that every array passes when it enters a dataclass."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopcheck.robots.errors import ShapeError

Array: TypeAlias = NDArray[np.float64]
"""Real numbers in double precision."""

AnyArray: TypeAlias = NDArray[Any]
"""Real numbers, or complex numbers for derivatives by the complex step."""

JointPositions: TypeAlias = Array
"""Joint positions of a robot [m, rad; quaternions -], shape (nq,), in the order of its joints. Loops are closed by the
caller."""

JointVelocities: TypeAlias = Array
"""Joint velocities [m/s or rad/s; of balls in body axes], shape (nv,)."""

JointAccelerations: TypeAlias = Array
"""Joint accelerations [m/s² or rad/s²], shape (nv,)."""

JointForces: TypeAlias = Array
"""Generalized forces on the joints [N or N m], shape (nv,)."""

Efforts: TypeAlias = Array
"""Efforts of the actuators [N or N m], shape (na,)."""

PositionSeries: TypeAlias = Array
"""`JointPositions` of several samples [m, rad; quaternions -], shape (nt, nq)."""

VelocitySeries: TypeAlias = Array
"""`JointVelocities` of several samples [m/s or rad/s], shape (nt, nv)."""

AccelerationSeries: TypeAlias = Array
"""`JointAccelerations` of several samples [m/s² or rad/s²], shape (nt, nv)."""

JointForceSeries: TypeAlias = Array
"""`JointForces` of several samples [N or N m], shape (nt, nv)."""

EffortSeries: TypeAlias = Array
"""`Efforts` of several samples [N or N m], shape (nt, na)."""

Times: TypeAlias = Array
"""Increasing sample times [s], shape (nt,)."""

PlanarPoses: TypeAlias = Array
"""Position and angle of a platform in its plane, of several samples [m, m, rad], shape (nt, 3)."""


def frozen(values: ArrayLike, shape: tuple[int | None, ...], *, name: str) -> Array:
    """Copy `values` into a read-only array of double precision and check it.

    Args:
        values: Input of `numpy.array` [any unit].
        shape: Required shape; None stands for any length.
        name: Name of the array in the error message.

    Raises:
        ShapeError: If the shape differs, or a value is NaN or infinite.
    """
    array = np.array(values, dtype=np.float64)
    matches = array.ndim == len(shape) and all(n is None or n == m for n, m in zip(shape, array.shape, strict=True))
    if not matches:
        lengths = ", ".join("any" if n is None else str(n) for n in shape)
        raise ShapeError(f"{name}: shape must be ({lengths}), got {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ShapeError(f"{name}: numbers must be finite, got {array[place]} at index {place}")
    array.flags.writeable = False
    return array


def cross(a: Array, b: Array) -> Array:
    """Cross product of two vectors; numpy's own takes several times as long on a single pair.

    Args:
        a: A vector [any unit], shape (3,).
        b: A vector [any unit], shape (3,).

    Returns:
        The product, shape (3,).
    """
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def want_increasing(t: Times, *, name: str, fewest: int) -> None:
    """Check that times increase.

    Args:
        name: Name of the times in the error message.
        fewest: Samples at least [-].

    Raises:
        ShapeError: At the first sample that violates a condition.
    """
    if len(t) < fewest:
        raise ShapeError(f"{name}: must have at least {fewest} samples, got {len(t)}")
    steps = np.diff(t)
    wrong = int(np.argmax(steps <= 0))
    if steps[wrong] <= 0:
        how = "repeats" if steps[wrong] == 0 else "goes back"
        raise ShapeError(
            f"{name}: times must increase, got a time that {how}: "
            f"{t[wrong]:.9g} s in row {wrong + 1}, then {t[wrong + 1]:.9g} s"
        )


def has_equal_steps(t: Times, *, unequal: float, rounding: float = 0.0) -> bool:
    """Return whether no step deviates from the median step by more than a part of it, or than rounding.

    Args:
        unequal: Largest deviation of a step from the median step, relative to it [-].
        rounding: The same for rounded times [s].
    """
    steps = np.diff(t)
    usual = float(np.median(steps))
    return bool(np.abs(steps - usual).max(initial=0.0) <= max(unequal * usual, rounding))


def want_equal_steps(t: Times, *, name: str, fewest: int, unequal: float) -> None:
    """Check that times increase in equal steps.

    Args:
        name: Name of the times in the error message.
        fewest: Samples at least [-].
        unequal: Largest deviation of a step from the median step, relative to it [-].

    Raises:
        ShapeError: At the first sample that violates a condition.
    """
    want_increasing(t, name=name, fewest=fewest)
    if has_equal_steps(t, unequal=unequal):
        return
    steps = np.diff(t)
    usual = float(np.median(steps))
    off = np.abs(steps - usual)
    worst = int(np.argmax(off))
    missing = round(float(steps[worst]) / usual) - 1
    guess = f" ({missing} missing samples?)" if missing > 0 and off[worst] > usual / 2 else ""
    raise ShapeError(
        f"{name}: all time steps must be equal to the median step ({usual:.6g} s), got {steps[worst]:.6g} s "
        f"after row {worst + 1}, t = {t[worst]:.9g} s{guess}"
    )


def root_mean_square(values: Array) -> float:
    """Root mean square of all entries, in their unit.

    Args:
        values: Numbers [any unit], shape (...).
    """
    return float(np.sqrt(np.mean(values**2)))


def svd(A: AnyArray, *, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """Singular value decomposition of finite matrices.

    numpy's method, divide and conquer, does not converge on some matrices with redundant rows, as Jacobians of planar
    loops in space have. These are decomposed by QR iteration, which takes several times as long.

    Args:
        A: Matrices [any unit], shape (..., m, n).
        full_matrices: Whether U and V are square.

    Returns:
        U [-], singular values [unit of A], and Vᵀ [-].

    Raises:
        numpy.linalg.LinAlgError: If a number is not finite.
    """
    try:
        U, values, V_T = np.linalg.svd(A, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        if not np.isfinite(A).all():
            raise
        from scipy.linalg import svd as by_driver

        each = A.reshape(-1, *A.shape[-2:])
        parts = [by_driver(one, full_matrices=full_matrices, lapack_driver="gesvd") for one in each]
        U, values, V_T = (np.array(x).reshape(*A.shape[:-2], *x[0].shape) for x in zip(*parts, strict=True))
    return U, values, V_T
