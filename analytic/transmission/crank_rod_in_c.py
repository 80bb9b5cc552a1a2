"""A transmission by cranks and rods as a C header: its equations, run on symbols, leave straight-line code."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

from loopcheck.analytic.batch.c_source import function
from loopcheck.analytic.batch.expressions import Graph, Scalar, Symbol, cosine, sine
from loopcheck.analytic.batch.tape import assemble_tape
from loopcheck.analytic.transmission.crank_rod import ITERATIONS, CrankRod, solved
from loopcheck.robots.arrays import Array

SYMBOLS = SimpleNamespace(sin=sine, cos=cosine, sqrt=lambda x: x.sqrt() if isinstance(x, Symbol) else x**0.5)
"""The functions that the equations need, of symbols and numbers."""
CONVERGED = 1e-9
"""Largest distance of the motors from their wanted positions after Newton's method [rad or m]."""


def c_header(transmission: CrankRod, x: Array) -> str:
    """A header with functions from joints to motors and back, without allocation; it needs `math.h` alone.

    Args:
        x: Joint positions where the rods reach [rad or m], shape (n,).
    """
    n, zero = len(transmission.joints), [0.0] * len(transmission.joints)
    start = transmission.motor_state(x)
    pins = [value for pin in transmission.pins(list(start.y), SYMBOLS) for value in pin]
    joints = ", ".join(f"{joint.name} [{'m' if joint.slides else 'rad'}]" for joint in transmission.joints)
    motors = ", ".join(f"{leg.motor} [{'m' if leg.slides else 'rad'}]" for leg in transmission.legs)
    given, state = ("x", "xd", "xdd", "joint_tau"), ("square", "cosine", "sine", "yd", "ydd", "tau", "leverage")
    outputs = dict.fromkeys(state, n) | {"T": n * n}
    functions = [
        _function(
            "state",
            _state(transmission),
            dict.fromkeys(given, n),
            outputs,
            x,
            *[zero] * 3,
        ),
        _function("pins", _pins(transmission), {"y": n}, {"pins": 3 * n}, start.y),
        _function("step", _step(transmission), {"x": n, "pins": 3 * n}, {"dx": n}, x, pins),
        _function("solve", _solve, {"T": n * n, "yd": n}, {"xd": n}, start.transmission.ravel(), start.y),
    ]
    positions = "\n".join(
        f"    y[{k}] = cosine[{k}];" if leg.slides else f"    y[{k}] = {leg.middle!r} + atan2(sine[{k}], cosine[{k}]);"
        for k, leg in enumerate(transmission.legs)
    )
    own = " + ".join(f"T[{k * n} + k] * (tau[{k}] - own[{k}])" for k in range(n))
    return f"""/* Transmission by cranks and rods, in closed form.
 *
 * joints x: {_comment(joints)}
 * motors y: {_comment(motors)}
 *
 * tau: efforts of the motors [N m or N]. joint_tau: efforts at the joints of a serial model without rotors, cranks and
 * rods. Functions return 0, or the reason for missing results: 1 + the index of the leg whose rod does not reach, or
 * -1 if the search for the joints did not end in this assembly; outputs are then not written.
 */
#ifndef LOOPCHECK_TRANSMISSION_H
#define LOOPCHECK_TRANSMISSION_H

#include <math.h>

{chr(10).join(functions)}

/* Positions, rates, accelerations and efforts of the motors that give the joints a motion with efforts, and T: rate of
 * each motor per rate of each joint, {n} rows of {n}. Motor efforts include rotors, cranks and rods; at rest and
 * without them, joint_tau = transpose of T times tau. */
static inline int transmission_motors(const double *x, const double *xd, const double *xdd, const double *joint_tau,
                                      double *y, double *yd, double *ydd, double *tau, double *T)
{{
    double square[{n}], cosine[{n}], sine[{n}], leverage[{n}], rate[{n}], acceleration[{n}], effort[{n}], row[{n * n}];
    int k;
    transmission_state(x, xd, xdd, joint_tau, square, cosine, sine, rate, acceleration, effort, leverage, row);
    for (k = 0; k < {n}; k++)
        if (!(square[k] > 0.0))
            return k + 1;
{positions}
    for (k = 0; k < {n}; k++)
        yd[k] = rate[k], ydd[k] = acceleration[k], tau[k] = effort[k];
    for (k = 0; k < {n * n}; k++)
        T[k] = row[k];
    return 0;
}}

/* The joints that motors move, from a guess in x: positions x, rates xd, accelerations xdd, and the efforts joint_tau
 * that are left for the serial model. */
static inline int transmission_joints(const double *y, const double *yd, const double *ydd, const double *tau,
                                      double *x, double *xd, double *xdd, double *joint_tau)
{{
    static const double zero[{n}] = {{0.0}};
    double pins[{3 * n}], dx[{n}], p[{n}], v[{n}], a[{n}], here[{n}], rate[{n}], bias[{n}], own[{n}], T[{n * n}];
    double change;
    int k, status;
    for (k = 0; k < {n}; k++)
        p[k] = x[k];
    transmission_pins(y, pins);
    for (status = 0; status < {ITERATIONS}; status++) {{
        transmission_step(p, pins, dx);
        change = 0.0;
        for (k = 0; k < {n}; k++)
            p[k] -= dx[k], change += fabs(dx[k]);
        if (change < 1e-12)
            break;
    }}
    status = transmission_motors(p, zero, zero, zero, here, rate, bias, own, T);
    if (status)
        return status;
    for (k = 0; k < {n}; k++)
        if (!(fabs(here[k] - y[k]) < {CONVERGED!r}))
            return -1;
    transmission_solve(T, yd, v);
    transmission_motors(p, v, zero, zero, here, rate, bias, own, T);
    for (k = 0; k < {n}; k++)
        bias[k] = ydd[k] - bias[k];
    transmission_solve(T, bias, a);
    transmission_motors(p, v, a, zero, here, rate, bias, own, T);
    for (k = 0; k < {n}; k++) {{
        x[k] = p[k], xd[k] = v[k], xdd[k] = a[k];
        joint_tau[k] = {own};
    }}
    return 0;
}}

#endif
"""


def _function(
    name: str,
    equations: Callable[..., Sequence[Scalar]],
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    *values: Sequence[float] | Array,
) -> str:
    """A function in C, from equations traced at some values of its inputs."""
    graph = Graph()
    symbols = [[graph.input(float(value)) for value in each] for each in values]
    text = function(f"transmission_{name}", assemble_tape(graph, equations(*symbols)), inputs, outputs)
    return text.replace("static void", "static inline void", 1)


def _state(transmission: CrankRod) -> Callable[..., Sequence[Scalar]]:
    def equations(
        x: Sequence[Scalar], xd: Sequence[Scalar], xdd: Sequence[Scalar], joint_efforts: Sequence[Scalar]
    ) -> list[Scalar]:
        legs, efforts = transmission.equations(x, xd, xdd, joint_efforts, SYMBOLS)
        turns = [[leg.turn[which] for leg in legs] for which in (0, 1)]
        rates = [[getattr(leg, name) for leg in legs] for name in ("rate", "acceleration")]
        rows = [value for leg in legs for value in leg.row]
        squares, leverages = ([getattr(leg, name) for leg in legs] for name in ("square", "leverage"))
        return [*squares, *turns[0], *turns[1], *rates[0], *rates[1], *efforts, *leverages, *rows]

    return equations


def _pins(transmission: CrankRod) -> Callable[..., Sequence[Scalar]]:
    return lambda y: [value for pin in transmission.pins(y, SYMBOLS) for value in pin]


def _step(transmission: CrankRod) -> Callable[..., Sequence[Scalar]]:
    def equations(x: Sequence[Scalar], pins: Sequence[Scalar]) -> list[Scalar]:
        return transmission.newton_step(x, [pins[k : k + 3] for k in range(0, len(pins), 3)], SYMBOLS)

    return equations


def _solve(T: Sequence[Scalar], rates: Sequence[Scalar]) -> Sequence[Scalar]:
    n = len(rates)
    return solved([T[k : k + n] for k in range(0, n * n, n)], rates)


def _comment(text: str) -> str:
    return text.replace("*/", "* /")
