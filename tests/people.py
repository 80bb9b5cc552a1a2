"""Logs as people write them: own `mj_step` loops, habits of rows, names and clocks, and faults of measured size.

The size of a fault is measured without loopcheck: MuJoCo's own mass matrix, bias and loop Jacobian give the required
efforts of the motion that was simulated.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco  # noqa: TID251
import numpy as np
import pandas as pd

from loopcheck.robots.arrays import Array

LINK = '<joint name="{0}" axis="0 1 0" damping="{1}"/><geom type="capsule" size=".01" fromto="0 0 0 {2}" mass="{3}"/>'
FOUR_BAR = """<mujoco>{option}<worldbody><body name="crank">{crank}
<body name="coupler" pos="0 0 .12">{coupler}</body></body>
<body name="rocker" pos=".3 0 0">{rocker}</body></worldbody><equality>
<connect body1="coupler" body2="rocker" anchor=".3 0 .08" {soft}/></equality>
<actuator><motor name="drive" joint="crank"/></actuator></mujoco>"""
FIVE_BAR = """<mujoco>{option}<worldbody>
<body name="left">{left}<body name="left_rod" pos="-.1 0 -.15">{left_rod}</body></body>
<body name="right" pos=".15 0 0">{right}<body name="right_rod" pos=".1 0 -.15">{right_rod}</body></body></worldbody>
<equality><connect body1="left_rod" body2="right_rod" anchor=".175 0 -.2" {soft}/></equality>
<actuator><motor name="left_motor" joint="left"/><motor name="right_motor" joint="right"/></actuator></mujoco>"""
SLIDER = """<mujoco>{option}<worldbody><body name="crank">{crank}<body name="rod" pos="0 0 .1">{rod}</body></body>
<body name="slider" pos=".25 0 .1"><joint name="slider" type="slide" axis="1 0 0"/>
<geom size=".02" mass="{mass}"/></body>
</worldbody><equality><connect body1="rod" body2="slider" anchor=".25 0 0" {soft}/></equality>
<actuator><motor name="drive" joint="crank"/></actuator></mujoco>"""
HARD = 'solref="{0} 1" solimp=".9999 .9999 .001"'
STEPS = (0.001, 0.002, 0.004, 0.005)
"""Steps of the simulations [s]."""
HABITS = ("before", "after", "stamped before", "instant", "every fifth")
"""Rows of the time before the step, or of that after it, or of its state with the stamp before it; rows of a much finer
simulation; and every fifth row after the step."""
CLOCKS = ("exact", "jitter", "missing", "date", "ms")
FAULTS = ("gain", "offset", "delay", "sign", "friction", "mass", "exchanged", "wave")
FINER = 20
"""Steps of a simulation between two rows that look like instants [-]."""
DURATION = 1.2
"""Duration of a log [s]."""


@dataclass(frozen=True, kw_only=True)
class WrittenLog:
    """A log in a file, and the truth on it."""

    model: Path
    file: Path
    t: Array
    """Times of the rows since the first [s], shape (nt,)."""
    effort: Array
    """Written efforts [N m], shape (nt, na)."""
    required: tuple[Array, ...]
    """Required efforts by each reading of the rows, the true one first [N m], each of shape (nt, na)."""
    words: str
    """Robot, habit, clock and fault."""

    def sizes(self, start: float) -> tuple[float, float]:
        """Largest differences of written from required efforts, worst actuator, by the true and the best reading [-].

        Over the largest required effort.

        Args:
            start: Beginning of the compared rows since the first [s].
        """
        rows = np.flatnonzero(self.t >= start)[:-3]
        sizes = [
            float((np.abs(self.effort - one)[rows] / np.abs(one[rows]).max(axis=0)).max()) for one in self.required
        ]
        return sizes[0], min(sizes)


def written(seed: int, fault: str, folder: Path) -> WrittenLog:
    """A log by a seed.

    Args:
        seed: Of all random choices.
        fault: One of `FAULTS`, empty for a right log.
        folder: Folder of the files.
    """
    rng = np.random.default_rng([seed, FAULTS.index(fault) + 1 if fault else 0])
    habit, clock = HABITS[seed % len(HABITS)], CLOCKS[seed // len(HABITS) % len(CLOCKS)]
    h = float(STEPS[rng.integers(len(STEPS))])
    name, text = _robot(rng, h / FINER if habit == "instant" else h / 5 if habit == "every fifth" else h)
    path = folder / f"{seed}.xml"
    path.write_text(text, encoding="utf-8")
    heavy = 1 + 0.1 * 4 ** rng.uniform(-1, 1) if fault == "mass" else 1.0
    truth = mujoco.MjModel.from_xml_string(text)
    every = {"instant": FINER, "every fifth": 5}.get(habit, 1)
    run = _run(_with_mass(text, heavy), rng, every, is_after=habit not in ("before", "instant"))
    wrong = _faulty(run, fault, rng)
    needed, n = _required(truth, **run.middle), np.arange(len(run.t))
    shifts = (0.0, 0.5, 1.0) if every == 1 else (0.0,)  # steps by which a delayed effort may be read as an earlier one
    required = tuple(np.stack([np.interp(n - shift, n, one) for one in needed.T], axis=1) for shift in shifts)
    columns = _columns(truth, replace(run, effort=wrong), rng)
    t = run.t - (h if habit == "stamped before" else 0.0)
    frame = pd.DataFrame({**_times(clock, t, h, rng), **columns})
    if clock == "missing":
        frame = frame[(rng.uniform(size=len(frame)) > 0.01) | (frame.index < 2)]
    file = folder / f"{seed}.csv"
    frame.to_csv(file, index=False)
    return WrittenLog(
        model=path,
        file=file,
        t=run.t - run.t[0],
        effort=wrong,
        required=required,
        words=f"{name}, {habit}, {clock}, {h:g} s, {fault or 'right'}",
    )


@dataclass(frozen=True, kw_only=True)
class _Run:
    """Rows of a simulation."""

    t: Array
    q: Array
    v: Array
    effort: Array
    middle: Mapping[str, Array]
    """State and acceleration in the middle of the step in which each effort acted."""


def _robot(rng: np.random.Generator, h: float) -> tuple[str, str]:
    integrator = rng.choice(["Euler", "implicitfast"])
    option = f'<option timestep="{h!r}" integrator="{integrator}" jacobian="dense"/>'
    soft = HARD.format(2 * h if rng.uniform() < 0.7 else 8 * h)

    def link(joint: str, end: str) -> str:
        return LINK.format(joint, f"{rng.uniform(0.005, 0.02):.3f}", end, f"{rng.uniform(0.2, 0.6):.3f}")

    kind = int(rng.integers(3))
    if kind == 0:
        links = {"crank": link("crank", "0 0 .12"), "coupler": link("coupler", ".3 0 .08")}
        return "four-bar", FOUR_BAR.format(option=option, soft=soft, rocker=link("rocker", "0 0 .2"), **links)
    if kind == 1:
        ends = {"left": "-.1 0 -.15", "left_rod": ".175 0 -.2", "right": ".1 0 -.15", "right_rod": "-.125 0 -.2"}
        return "five-bar", FIVE_BAR.format(option=option, soft=soft, **{k: link(k, end) for k, end in ends.items()})
    links = {"crank": link("crank", "0 0 .1"), "rod": link("rod", ".25 0 0")}
    return "slider", SLIDER.format(option=option, soft=soft, mass=f"{rng.uniform(0.3, 0.8):.3f}", **links)


def _with_mass(text: str, factor: float) -> Any:
    """The model with another mass of its second body."""
    spec = mujoco.MjSpec.from_string(text)
    spec.geoms[1].mass *= factor
    return spec.compile()


def _run(model: Any, rng: np.random.Generator, every: int, *, is_after: bool) -> _Run:
    """A loop as everybody writes it: a controller, a step, a row."""
    data, dof = mujoco.MjData(model), [model.jnt_dofadr[j] for j in model.actuator_trnid[:, 0]]
    frequency, phase = 2 * np.pi * rng.uniform(1.5, 2.5), rng.uniform(0, np.pi, size=model.nu)
    steps = round(DURATION / model.opt.timestep)
    h = model.opt.timestep
    bandwidth = min(40.0, 0.1 / h)
    inertia = np.array([0.02] * model.nu)
    rows: dict[str, list[Array]] = {name: [] for name in ("t", "q", "v", "effort", "q_m", "v_m", "a_m")}
    for k in range(steps):
        t = data.time
        ramp = 1 - np.exp(-((t / 0.1) ** 2))
        target = 0.3 * ramp * (np.cos(phase) - np.cos(frequency * t + phase))
        data.ctrl[:] = inertia * (bandwidth**2 * (target - data.qpos[dof]) - 2 * bandwidth * data.qvel[dof])
        before = (t, data.qpos.copy(), data.qvel.copy())
        mujoco.mj_step(model, data)
        after = (data.time, data.qpos.copy(), data.qvel.copy())
        if k % every:
            continue
        row = after if is_after else before
        middle = ((before[1] + after[1]) / 2, (before[2] + after[2]) / 2, (after[2] - before[2]) / h)
        for name, value in zip(rows, (*row, data.actuator_force.copy(), *middle), strict=True):
            rows[name].append(np.asarray(value))
    table = {name: np.array(values) for name, values in rows.items()}
    return _Run(
        t=table["t"],
        q=table["q"],
        v=table["v"],
        effort=table["effort"],
        middle={name: table[f"{name}_m"] for name in "qva"},
    )


def _required(model: Any, q: Array, v: Array, a: Array) -> Array:
    """Required efforts by MuJoCo's matrices, without multipliers [N m], shape (n, nu)."""
    data, M, efforts = mujoco.MjData(model), np.zeros((model.nv, model.nv)), []
    for one in zip(q, v, a, strict=True):
        data.qpos[:], data.qvel[:] = one[:2]
        mujoco.mj_forward(model, data)
        _full_mass(model, data, M)
        J = data.efc_J.reshape(-1, model.nv)[: data.ne]
        _, values, V_T = np.linalg.svd(J)
        N = V_T[int((values > 1e-6 * values[0]).sum()) :].T
        S = np.zeros((model.nu, model.nv))
        S[np.arange(model.nu), [model.jnt_dofadr[j] for j in model.actuator_trnid[:, 0]]] = 1
        force = M @ one[2] + data.qfrc_bias - data.qfrc_passive
        efforts.append(np.linalg.lstsq(N.T @ S.T, N.T @ force, rcond=None)[0])
    return np.array(efforts)


def _full_mass(model: Any, data: Any, M: Array) -> None:
    for k in range(model.nv):
        column = np.zeros(model.nv)
        unit = np.zeros(model.nv)
        unit[k] = 1
        mujoco.mj_mulM(model, data, column, unit)
        M[:, k] = column


def _faulty(run: _Run, fault: str, rng: np.random.Generator) -> Array:
    """Efforts with a fault."""
    effort, peak = run.effort, np.abs(run.effort[len(run.t) // 2 :]).max(axis=0)
    amount = 0.02 * 10 ** rng.uniform(-0.3, 1.2)
    changes: Mapping[str, Callable[[], Array]] = {
        "gain": lambda: effort * (1 + amount),
        "offset": lambda: effort + amount * peak,
        "delay": lambda: np.concatenate([effort[:1].repeat(d := int(rng.integers(2, 7)), axis=0), effort[:-d]]),
        "sign": lambda: -effort,
        "friction": lambda: effort + amount * peak * np.sign(run.v[:, :1]),
        "exchanged": lambda: effort[:, ::-1] if effort.shape[1] > 1 else effort * (1 + amount),
        "wave": lambda: effort + amount * peak * np.sin(40 * run.t)[:, None],
    }
    return changes[fault]() if fault in changes else effort


def _columns(model: Any, run: _Run, rng: np.random.Generator) -> dict[str, Array]:
    """Columns in one of the spellings."""
    q, v, u = [
        ("qpos_{}", "qvel_{}", "ctrl_{}"),
        ("q{}", "dq{}", "tau{}"),
        ("qpos[{}]", "qvel[{}]", "actuator_force[{}]"),
    ][int(rng.integers(3))]
    columns = {q.format(k): column for k, column in enumerate(run.q.T)}
    if rng.uniform() < 0.8:
        columns |= {v.format(k): column for k, column in enumerate(run.v.T)}
    return columns | {u.format(k): column for k, column in enumerate(run.effort.T)}


def _times(clock: str, t: Array, h: float, rng: np.random.Generator) -> dict[str, Any]:
    """Stamps of a clock."""
    if clock == "jitter":
        return {"time": t + 0.05 * h * rng.normal(size=len(t))}
    if clock == "date":
        return {"stamp": [str(1_760_000_000 * 10**9 + round(1e9 * x)) for x in t]}
    return {"time_ms": 1e3 * t} if clock == "ms" else {"time": t}
