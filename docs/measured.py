"""Tables of two measured arms against their published models, in the reference: `python -m docs.measured CLONE`.

CLONE is a clone of the repository in `REPOSITORY`, whose logs and models stay there. E is the measured minus the
required effort, u_D the noise of the reading (what a low-pass filter removes), u_input half a digit of every published
inertia, mass centre and friction (Monte Carlo, seed 0); u_num is 1e-13 of the effort at most. The uncertainty of the
validation is u_val = (u_D² + u_input² + u_num²)^(1/2) (ASME V&V 20).
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd
from scipy import signal

from docs.marked_parts import with_part
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import cases_of

PAGE = Path(__file__).parent / "reference/measured.md"
REPOSITORY = "https://github.com/thanhndv212/figaroh-examples"
SAMPLES = 30
"""Of the uncertain inputs."""
HALF_A_DIGIT = 5e-4
"""Of mass centres [m] and inertias [kg m²] of the TX40."""
TURNS = 0.01
"""Rate around which dry friction turns its sign [rad/s]."""

TX40 = [f"joint_{k}" for k in range(1, 7)]
RATIOS = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
"""Gear ratios of the TX40; motor 6 turns with joints 5 and 6."""
VISCOUS = np.array([8.05, 5.53, 1.97, 1.11, 1.86, 0.65, 0.616])
DRY = np.array([7.14, 8.26, 6.34, 2.48, 3.03, 0.282, 1.95])
ROTORS = np.array([0.362, 0.362, 0.0988, 0.0313, 0.0468, 0.0105, 0.00964])
"""Published friction [N m s/rad, N m] and rotor inertias [kg m²] of the joints, and of motor 6 on joints 5 and 6."""

TIAGO = [f"arm_{k}_joint" for k in range(1, 5)]
"""Joints of the TIAGo arm with recorded currents."""
CONSTANTS = np.array([13.6, 13.6, -8.7, -8.7])
"""Published joint torque per current [N m/A]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A measured motion and the efforts read with it, filtered and thinned."""

    case: Case
    motion: Motion
    effort: Array
    """Measured efforts [N m], shape (nt, na)."""
    noise: Array
    """Noise of each reading [N m], shape (na,)."""


def record(case: Case, t: Array, q: Array, effort: Array, *, cutoff: float, every: int) -> Record:
    """A record from readings on an even grid, by a zero-phase filter below a frequency [Hz]."""
    numbers = signal.butter(4, 2 * cutoff * (t[1] - t[0]))

    def smooth(x: Array) -> Array:
        return np.asarray(signal.filtfilt(*numbers, x, axis=0))

    q, smoothed = smooth(q), smooth(effort)
    qd = smooth(np.gradient(q, t, axis=0))
    qdd = smooth(np.gradient(qd, t, axis=0))
    inner = slice(10 * every, -10 * every, every)  # the filter sees beyond neither end
    motion = Motion(t=t[inner], q=q[inner], qd=qd[inner], qdd=qdd[inner], law=_no_law, assemble=_no_law)
    return Record(case=case, motion=motion, effort=smoothed[inner], noise=rms(effort - smoothed))


def _no_law(t: object) -> NoReturn:
    raise NotImplementedError("a measured motion has no law")


def rms(x: Array) -> Array:
    """Root of the mean square over time."""
    return np.asarray(np.sqrt((x**2).mean(axis=0)))


def arm(urdf: str, joints: list[str], folder: Path, name: str) -> Case:
    """The arm alone: other joints locked, no shapes, and inertias that no body can have made possible."""
    urdf = re.sub(r"<(visual|collision|transmission|gazebo)\b.*?</\1>|<mimic[^>]*/>", "", urdf, flags=re.DOTALL)
    urdf = re.sub(
        r'<joint name="([^"]+)" type="[^"]+">',
        lambda match: match[0] if match[1] in joints else f'<joint name="{match[1]}" type="fixed">',
        urdf,
    )
    path = folder / f"{name}.urdf"
    path.write_text(re.sub(r"<inertia [^>]*/>", _possible, urdf), encoding="utf-8")
    (case, *_) = cases_of([path], variants=["default"], actuated=",".join(joints))
    return case


def _possible(match: re.Match[str]) -> str:
    """Principal moments raised until none is above the sum of the others, as MuJoCo's balanceinertia does."""
    numbers = {name: float(value) for name, value in re.findall(r'(i\w\w)="([^"]+)"', match[0])}
    rows = [[numbers["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"]
    moments, axes = np.linalg.eigh(np.array(rows))
    moments = np.maximum(moments, 1e-4 if not moments.any() else 1e-9)
    moments[:2] *= max(1.0, moments[2] / moments[:2].sum() * (1 + 1e-9))
    m = (axes * moments) @ axes.T
    names = {"ixx": m[0, 0], "ixy": m[0, 1], "ixz": m[0, 2], "iyy": m[1, 1], "iyz": m[1, 2], "izz": m[2, 2]}
    return "<inertia " + " ".join(f'{name}="{value:.17g}"' for name, value in names.items()) + "/>"


def tx40(clone: Path, folder: Path) -> Record:
    """Motor torques and positions of a Stäubli TX40, 9 s at 5 kHz."""
    at = clone / "examples/staubli_TX40"
    torque, turned = (pd.read_csv(at / f"data/{name}.csv").to_numpy() for name in ("curr_data", "pos_read_data"))
    to_motors = np.diag(RATIOS)
    to_motors[5, 4] = RATIOS[5]
    q = np.linalg.solve(to_motors, turned.T).T + np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    case = arm((at / "urdf/tx40_mdh_modified.urdf").read_text(encoding="utf-8"), TX40, folder, "tx40")
    return record(case, 2e-4 * np.arange(len(q)), q, torque @ to_motors, cutoff=100.0, every=25)


def tiago(clone: Path, folder: Path) -> Record:
    """Currents and positions of a TIAGo arm, 80 s at 100 Hz."""
    at = clone / "examples/tiago"
    tables = [pd.read_csv(at / f"data/identification/dynamic/tiago_{name}.csv") for name in ("position", "effort")]
    stamps = tables[0].iloc[:, 0].to_numpy(float)
    t = np.arange(0, stamps[-1], 0.01)
    q, current = (
        np.column_stack([np.interp(t, stamps, of[next(c for c in of if name in str(c))]) for name in joints])
        for of, joints in zip(tables, ([*TIAGO, *(f"arm_{k}_joint" for k in (5, 6, 7))], TIAGO), strict=True)
    )
    names = [*TIAGO, "arm_5_joint", "arm_6_joint", "arm_7_joint"]
    case = arm((at / "urdf/tiago_48_schunk.urdf").read_text(encoding="utf-8"), names, folder, "tiago")
    return record(case, t, q, current * CONSTANTS, cutoff=3.0, every=5)


def required(case: Case, motion: Motion) -> Array:
    """Efforts of the rigid bodies [N m], shape (nt, na)."""
    return Noc().compute_efforts(case, motion).effort


def with_motor_6(of_joints: Array, of_motor: Array) -> Array:
    """Efforts of the joints [N m], shape (nt, 6), and those of motor 6 on joints 5 and 6, shape (nt, 2)."""
    return np.concatenate([of_joints[:, :4], of_joints[:, 4:] + of_motor], axis=1)


def terms(motion: Motion, rotors: Array, viscous: Array, dry: Array) -> Iterator[tuple[str, Array]]:
    """Published terms of the TX40 besides rigid bodies, each of shape (nt, 6) [N m]."""
    qd, qdd, other = motion.qd, motion.qdd, [5, 4]  # joint 5 feels motor 6 by the motion of joint 6, and joint 6 by 5
    yield "rotors", with_motor_6(rotors[:6] * qdd, rotors[6] * qdd[:, other])
    yield "viscous friction", with_motor_6(viscous[:6] * qd, viscous[6] * qd[:, other])
    turns = np.tanh((qd[:, 4:5] + qd[:, 5:]) / TURNS)
    yield "dry friction", with_motor_6(dry[:6] * np.tanh(qd / TURNS), dry[6] * turns)


def uncertain(mechanism: Mechanism, rng: np.random.Generator) -> Mechanism:
    """A mechanism whose mass centres and inertias differ by up to half their last digit."""
    bodies = []
    for body in mechanism.bodies:
        off = rng.uniform(-HALF_A_DIGIT, HALF_A_DIGIT, size=(2, 3))
        largest = float(np.trace(body.inertia)) / 4  # so that the body remains possible
        inertia = body.inertia + np.diag(np.clip(off[1], -largest / 3, largest / 3))
        bodies.append(replace(body, center=body.center + off[0], inertia=inertia))
    return replace(mechanism, bodies=tuple(bodies))


def of_tx40(measured: Record) -> pd.DataFrame:
    """What the rigid bodies and each published term leave of the measured effort, and the validation uncertainty."""
    motion, case, rng = measured.motion, measured.case, np.random.default_rng(0)
    model = required(case, motion)
    columns = {"measured": rms(measured.effort), "E: rigid bodies": rms(measured.effort - model)}
    for name, term in terms(motion, ROTORS, VISCOUS, DRY):
        model = model + term
        columns[f"with {name}"] = rms(measured.effort - model)
    samples = []
    for _ in range(SAMPLES):
        others = [x + rng.uniform(-0.005, 0.005, 7) * (1.0 if x is not ROTORS else 0.1) for x in (ROTORS, VISCOUS, DRY)]
        bodies = replace(case, mechanism=uncertain(case.mechanism, rng))
        samples.append(required(bodies, motion) + sum(term for _, term in terms(motion, *others)))
    spread = rms(np.stack(samples).std(axis=0, ddof=1))
    columns |= {"u_D": measured.noise, "u_input": spread, "u_val": np.hypot(measured.noise, spread)}
    return pd.DataFrame(columns, index=TX40)


def of_tiago(measured: Record) -> pd.DataFrame:
    """What the rigid bodies leave of the measured effort, and what fitted friction explains."""
    off = measured.effort - required(measured.case, measured.motion)[:, : len(TIAGO)]
    fits, left = [], []
    for residual, qd in zip(off.T, measured.motion.qd.T, strict=False):
        regressor = np.column_stack([np.tanh(qd / TURNS), qd, np.ones_like(qd)])
        fits.append(np.linalg.lstsq(regressor, residual, rcond=None)[0])
        left.append(float(rms(residual - regressor @ fits[-1])))
    dry, viscous, offset = np.transpose(fits)
    columns = {"measured": rms(measured.effort), "E: rigid bodies": rms(off), "E after the fit": left}
    columns |= {"dry friction [N m]": dry, "viscous [N m s/rad]": viscous, "offset [N m]": offset}
    return pd.DataFrame({**columns, "u_D": measured.noise}, index=TIAGO)


def main(clone: Path) -> None:
    """Write both tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            "tx40": of_tx40(tx40(clone, Path(folder))),
            "tiago": of_tiago(tiago(clone, Path(folder))),
        }
    for name, found in tables.items():
        text = with_part(text, name, found.rename_axis("joint").to_markdown(floatfmt=".3g"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
