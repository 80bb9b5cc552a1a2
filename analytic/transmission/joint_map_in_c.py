"""The functions of a `JointMap` as C: its equations, run on symbols, leave straight-line code."""

from itertools import product

import numpy as np
from numpy.polynomial.chebyshev import chebder

from loopcheck.analytic.batch.c_source import function
from loopcheck.analytic.batch.expressions import Graph, Scalar
from loopcheck.analytic.batch.tape import Tape, assemble_tape
from loopcheck.analytic.transmission.joint_map import JointMap
from loopcheck.robots.arrays import Array

NEGLIGIBLE = 1e-14
"""Coefficients below this part of the largest of their function are left out [-]."""


def c_source(functions: JointMap) -> str:
    """A source file with `joint_map` and `joint_map_missing_efforts`, which needs the library of C alone."""
    n, na = len(functions.joints), len(functions.motors)
    positions = function("positions_and_transmission", _kinematics(functions), {"x": n}, {"y": na, "T": na * n})
    inputs = {"x": n, "xd": n, "xdd": n}
    efforts = function("efforts_that_are_missing", _efforts(functions), inputs, {"tau": n})
    low, high = (", ".join(repr(float(value)) for value in side) for side in (functions.low, functions.high))
    joints, motors = (", ".join(names).replace("*/", "* /") for names in (functions.joints, functions.motors))
    return f"""/* Transmission of a closed mechanism and efforts missing from its serial model, by joint position.
 *
 * joints x [rad or m]: {joints}
 * motors y [rad or m]: {motors}
 *
 * Both functions return 0 on success. If a joint is outside its range, they return 1 + its index and write no results.
 */
#include <math.h>

static int outside(const double *x)
{{
    static const double low[] = {{{low}}}, high[] = {{{high}}};
    int k;
    for (k = 0; k < {n}; k++)
        if (!(x[k] >= low[k] && x[k] <= high[k]))
            return k + 1;
    return 0;
}}

{positions}

{efforts}

/* Positions y of the {na} motors, and T: rate of each motor per rate of each joint, {na} rows of {n}. Efforts at the
 * joints = transpose of T times efforts at the motors. */
int joint_map(const double *x, double *y, double *T)
{{
    const int place = outside(x);
    if (!place)
        positions_and_transmission(x, y, T);
    return place;
}}

/* Efforts tau [N m or N] at the joints to add to those of the serial model, for rates xd and accelerations xdd. */
int joint_map_missing_efforts(const double *x, const double *xd, const double *xdd, double *tau)
{{
    const int place = outside(x);
    if (!place)
        efforts_that_are_missing(x, xd, xdd, tau);
    return place;
}}
"""


def _kinematics(functions: JointMap) -> Tape:
    graph = Graph()
    x = [graph.input(float(value)) for value in functions.low]
    basis = _basis(functions, list(x))
    count = len(functions.motors) * (1 + len(functions.joints))
    return assemble_tape(graph, [_series(_kept(functions.coefficients[..., k]), basis) for k in range(count)])


def _efforts(functions: JointMap) -> Tape:
    """The equations of `JointMap.missing_efforts`."""
    n, na = len(functions.joints), len(functions.motors)
    graph = Graph()
    x, xd, xdd = ([graph.input(float(value)) for value in start] for start in (functions.low, *np.ones((2, n))))
    basis, half = _basis(functions, list(x)), (functions.high - functions.low) / 2
    place = na * (1 + n)
    mass, damping = (
        functions.coefficients[..., place + k * n * n : place + (k + 1) * n * n].reshape(
            *functions.coefficients.shape[:-1], n, n
        )
        for k in (0, 1)
    )
    tau: list[Scalar] = [_series(_kept(functions.coefficients[..., k - n]), basis) for k in range(n)]
    for i, j in product(range(n), repeat=2):
        M = _kept((mass[..., i, j] + mass[..., j, i]) / 2)
        tau[i] = tau[i] + _series(M, basis) * xdd[j] + _series(_kept(damping[..., i, j]), basis) * xd[j]
        for k in range(n):
            slope = _series(chebder(M, axis=k) / half[k], basis)
            tau[i] = tau[i] + slope * (xd[k] * xd[j])
            tau[k] = tau[k] - slope * (xd[i] * xd[j]) * 0.5
    return assemble_tape(graph, tau)


def _kept(coefficients: Array) -> Array:
    """Coefficients of a function without round-off terms."""
    return np.where(np.abs(coefficients) > NEGLIGIBLE * np.abs(coefficients).max(), coefficients, 0.0)


def _basis(functions: JointMap, x: list[Scalar]) -> list[list[Scalar]]:
    """Chebyshev polynomials of each coordinate, by degrees."""
    bases = []
    for value, low, high, size in zip(x, functions.low, functions.high, functions.coefficients.shape[:-1], strict=True):
        u = (value - float(low + high) / 2) * float(2 / (high - low))
        basis: list[Scalar] = [1.0, u]
        while len(basis) < size:
            basis.append(2.0 * u * basis[-1] - basis[-2])
        bases.append(basis)
    return bases


def _series(coefficients: Array, basis: list[list[Scalar]]) -> Scalar:
    """A series, by the first coordinate of series by the others."""
    if not basis:
        return float(coefficients)
    total: Scalar = 0.0
    for one, factor in zip(coefficients, basis[0], strict=False):
        if np.any(one):
            total = total + factor * _series(one, basis[1:])
    return total
