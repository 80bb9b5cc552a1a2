"""What `loopcheck serial` prints and writes, applied as it stands in a simulator loop of its own.

The loop is MuJoCo's inverse dynamics of the serial model; the closed mechanism is `transmission.py`, without loopcheck.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco  # noqa: TID251 - a simulator loop of its own
import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.transmission import bounds
from loopcheck.analytic.transmission.motions import random_course
from loopcheck.robots.arrays import Array
from loopcheck.robots.transmission import FOLDER
from loopcheck.validation.cli import main
from loopcheck.validation.execution import progress
from loopcheck.validation.serial import study
from tests.pageless import leave_pages_out
from tests.validation.conftest import Once, in_this_process
from tests.validation.test_serial import no_functions

Run = Callable[..., "Printed"]
G1 = "unitree_g1_ankle_left"
TEXT = "terminal.txt"
DIFFERENTIAL = """<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
<body name="cross"><joint name="pitch" axis="0 1 0" range="-1 1"/>
<inertial mass=".2" pos="0 0 0" diaginertia="1e-3 1e-3 1e-3"/>
<body name="hand"><joint name="roll" axis="1 0 0" range="-1 1"/>
<inertial mass="2" pos=".1 0 -.2" diaginertia=".01 .02 .02"/></body></body>{motors}</worldbody>{rest}</mujoco>"""
ROTORS = """<body name="left"><joint name="left" axis="0 1 0" armature=".03125"/>
<inertial mass="1e-9" pos="0 0 0" diaginertia="1e-12 1e-12 1e-12"/></body>
<body name="right"><joint name="right" axis="0 1 0" armature=".03125"/>
<inertial mass="1e-9" pos="0 0 0" diaginertia="1e-12 1e-12 1e-12"/></body>"""
GEARS = """<tendon><fixed name="sum"><joint joint="pitch" coef="2"/><joint joint="roll" coef="3"/></fixed>
<fixed name="difference"><joint joint="pitch" coef="2"/><joint joint="roll" coef="-3"/></fixed>
<fixed name="first"><joint joint="left" coef="1"/></fixed>
<fixed name="second"><joint joint="right" coef="1"/></fixed></tendon>
<equality><tendon tendon1="first" tendon2="sum"/><tendon tendon1="second" tendon2="difference"/></equality>
<actuator><motor joint="left"/><motor joint="right"/></actuator>"""
LEG = """<body name="{side}thigh" pos="{y} 0 0"><joint name="{side}hip" axis="1 0 0" damping=".02" armature=".05"/>
<inertial mass=".05" pos="0 .03 -.05" diaginertia="9e-5 7e-5 3e-5"/>
<body name="{side}shin" pos="0 .07 -.1"><joint name="{side}knee" axis="1 0 0" armature=".05"/>
<inertial mass=".13" pos="0 -.03 -.05" diaginertia="2e-4 1.5e-4 6e-5"/>
<body name="{side}rod" pos="0 .02 .025"><joint name="{side}rod" axis="1 0 0" armature=".05"/>
<inertial mass=".05" pos="0 -.022 .057" diaginertia="7e-5 6e-5 2e-5"/></body>
<body name="{side}wheel" pos="0 -.07 -.1"><joint name="{side}foot" axis="1 0 0" armature=".05"/>
<inertial mass=".1" pos="0 0 0" diaginertia="8e-5 4e-5 4e-5"/></body></body></body>"""


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A run with its terminal text and folder."""

    text: str
    folder: Path

    @property
    def armatures(self) -> dict[str, float]:
        """Of the table in the terminal [kg or kg m²]."""
        rows = re.findall(r"^│ (\S+) +│ ([\d.e+-]+) +│ [\d.e+-]+ +│", self.text, re.MULTILINE)
        return {joint: float(value) for joint, value in rows}

    @property
    def limits(self) -> dict[str, float]:
        """Of the same table [N or N m]."""
        rows = re.findall(r"^│ (\S+) .*│ ([\d.]+) \([^()]+\) *│$", self.text, re.MULTILINE)
        return {joint: float(value) for joint, value in rows}

    @property
    def settings(self) -> SimpleNamespace:
        """Names of `serial_settings.py`."""
        names: dict[str, Any] = {}
        exec((self.folder / "serial_settings.py").read_text(encoding="utf-8"), names)
        return SimpleNamespace(**{name: names[name] for name in ("ISAAC_LAB", "MJLAB")})

    @cached_property
    def transmission(self) -> Any:
        """The closed mechanism of the serial model, as written."""
        spec = spec_from_file_location(f"of_{self.folder.name}", self.folder / "transmission.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[spec.name] = module  # its dataclasses look for their module
        spec.loader.exec_module(module)
        return module.TRANSMISSION

    def table(self, quantity: str = "effort at motor") -> pd.DataFrame:
        rows = pd.read_csv(self.folder / "serial.csv")
        return rows[rows["quantity"] == quantity]

    def joint_efforts(
        self,
        course: tuple[Array, Array, Array],
        armatures: Mapping[str, float] | None = None,
        file: str = "stand_in.xml",
    ) -> Array:
        """Efforts that MuJoCo's inverse dynamics needs at the joints of the transmission."""
        model = mujoco.MjModel.from_xml_path(str(self.folder / file))
        names = [joint.name for joint in self.transmission.joints]
        dofs = [model.joint(name).dofadr[0] for name in names]
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
        for name, value in (armatures or {}).items():
            model.joint(name).armature[0] = value
        data, efforts = mujoco.MjData(model), []
        for x, xd, xdd in zip(*course, strict=True):
            data.qpos[:] = model.qpos0
            data.qpos[[model.joint(name).qposadr[0] for name in names]] += x
            data.qvel[dofs], data.qacc[dofs] = xd, xdd
            mujoco.mj_inverse(model, data)
            efforts.append(data.qfrc_inverse[dofs].copy())
        return np.array(efforts)

    def errors(self, course: tuple[Array, Array, Array], efforts: Array) -> Array:
        """Of the motors: root mean square over the peak, efforts at the joints given."""
        state = self.transmission.motor_state(*course, self.joint_efforts(course))
        own = np.linalg.solve(state.transmission.swapaxes(1, 2), efforts[..., None])[..., 0]
        return np.asarray(np.sqrt(((own - state.efforts) ** 2).mean(axis=0)) / np.abs(state.efforts).max(axis=0))


@pytest.fixture(scope="module")
def serial(once: Once) -> Run:
    """Runs the command once for each set of arguments, without pages and functions of the pose."""

    def run(*arguments: str) -> Printed:
        def write(folder: Path) -> None:
            with in_this_process() as patch:
                patch.setattr(study, "fitted", no_functions)
                if arguments[0] != G1:
                    patch.setattr(bounds, "CLOSE", 0.2)  # limits are looked at in one run alone
                leave_pages_out(patch)
                status, out = called("serial", *arguments, "--samples", "16", "--out", str(folder))
            assert status == 0, out
            (folder / TEXT).write_text(out, encoding="utf-8")

        folder = once(write, *arguments)
        return Printed(text=(folder / TEXT).read_text(encoding="utf-8"), folder=folder)

    return run


def called(*arguments: str) -> tuple[int, str]:
    """Status and text of a command in this process."""
    text = StringIO()
    with redirect_stdout(text), pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "PERIOD", 1e6)
        patch.setattr(sys, "argv", ["loopcheck", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
    return int(end.value.code or 0), text.getvalue()


def motion(box: Array, seed: int) -> tuple[Array, Array, Array]:
    """Two sines in each joint, of the size of usual motions."""
    generator, t, n = np.random.default_rng(seed), np.linspace(0, 3, 121)[:, None], len(box)
    rates, phases = generator.uniform(2, 6, (2, n)), generator.uniform(0, 6, (2, n))
    size = 0.25 * np.ptp(box, axis=1) / 2
    waves = [
        (np.sin(w * t + p), w * np.cos(w * t + p), -(w**2) * np.sin(w * t + p))
        for w, p in zip(rates, phases, strict=True)
    ]
    x, xd, xdd = (size * (one + other) for one, other in zip(*waves, strict=True))
    return x + box.mean(axis=1), xd, xdd


def best_error(printed: Printed, course: tuple[Array, Array, Array]) -> float:
    """Largest error of the armatures that are best for a motion itself, by least squares."""
    plain = printed.joint_efforts(course)
    state = printed.transmission.motor_state(*course, plain)
    inverse, peaks = np.linalg.inv(state.transmission).swapaxes(1, 2), np.abs(state.efforts).max(axis=0)
    columns = (inverse * course[2][:, None] / peaks[:, None]).reshape(-1, plain.shape[1])
    lacking = ((state.efforts - np.einsum("taj,tj->ta", inverse, plain)) / peaks).ravel()
    armature = np.linalg.lstsq(columns, lacking, rcond=None)[0]
    return float(printed.errors(course, plain + armature * course[2]).max())


INNER = {G1: np.array([[-0.64, 0.38], [-0.19, 0.19]]), "robonex_knee_left": np.array([[-0.3, 0.3]])}


@pytest.mark.extended(
    "tests/analytic/test_transmission_constants.py::test_the_diagonal_is_that_of_a_bounded_least_squares_search",
    "test_constants_of_a_differential_are_exact",
)
def test_armatures_as_printed_and_as_written_are_near_the_best(serial: Run) -> None:
    printed = serial(G1)
    settings = printed.settings
    written = settings.ISAAC_LAB["armature"]
    assert list(printed.armatures) == list(written) == settings.ISAAC_LAB["joint_names_expr"]
    assert list(printed.armatures.values()) == pytest.approx(list(written.values()), rel=1e-5)
    assert {joint["target_names_expr"][0]: joint["armature"] for joint in settings.MJLAB} == written
    largest = []
    for seed in range(4):
        course = motion(INNER[G1], seed)
        plain = printed.errors(course, printed.joint_efforts(course))
        for armatures in (printed.armatures, written):
            errors = printed.errors(course, printed.joint_efforts(course, armatures))
            assert (errors < 0.35 * plain).all()
        largest.append((errors.max(), best_error(printed, course)))
        doubled = dict.fromkeys(written, 2 * 0.003609725)
        assert errors.mean() < 0.5 * printed.errors(course, printed.joint_efforts(course, doubled)).mean()
        repaired = printed.errors(course, printed.joint_efforts(course, file="serial_repaired.xml"))
        assert repaired == pytest.approx(errors, rel=1e-6)
    own, best = np.mean(largest, axis=0)
    assert own < 1.2 * best + 1e-3


@pytest.mark.extended(
    "tests/validation/test_serial_writing.py::test_mjcf_has_the_limits_and_the_error_that_it_is_said_to_have",
    "tests/validation/test_serial_writing.py::test_settings_have_symmetric_limits_and_the_error_that_they_are_said_to_have",
    "test_constants_of_a_differential_are_exact",
)
def test_the_stated_error_is_that_of_exactly_what_is_written(serial: Run) -> None:
    """On the stated motions; those that choose are others."""
    for name, file in ((G1, "stand_in.xml"), ("robonex_knee_left", "serial_repaired.xml")):
        printed = serial(name)
        rows = printed.table()
        box = box_of(rows, printed)
        way = "armature" if file == "stand_in.xml" else "constant"
        for seed in range(5):
            course = random_course(box, seed)
            armatures = printed.settings.ISAAC_LAB["armature"] if way == "armature" else None
            own = printed.errors(course, printed.joint_efforts(course, armatures, file))
            plain = printed.errors(course, printed.joint_efforts(course))
            of_motion = rows[rows["motion"] == f"random {seed}"]
            assert of_motion[f"{way}_rms"].to_numpy() == pytest.approx(own, rel=1e-5)
            assert of_motion["plain_rms"].to_numpy() == pytest.approx(plain, rel=1e-5)
        assert (rows[f"{way}_rms"] <= rows["plain_rms"] + 1e-3).all()
        largest = re.search(r"these armatures: (\S+) %", (printed.folder / "serial_settings.py").read_text("utf-8"))
        assert largest is not None
        assert float(largest[1]) == pytest.approx(100 * rows["armature_rms"].max(), rel=0.05)


def box_of(rows: pd.DataFrame, printed: Printed) -> Array:
    """The box of the stated motions."""
    assert set(rows["motion"]) >= {"slow", "tilted 45°", *(f"random {seed}" for seed in range(5))}
    return np.array(json.loads((printed.folder / "run.json").read_text(encoding="utf-8"))["box_of_motions"])


@pytest.mark.extended("tests/validation/test_serial_writing.py::test_proven_limits_are_the_bounds_of_their_quantity")
def test_there_is_one_limit_and_it_is_proven(serial: Run) -> None:
    printed = serial(G1)
    assert printed.limits == printed.settings.ISAAC_LAB["effort_limit_sim"] == {"pitch_joint": 28.4, "roll_joint": 20.8}
    assert [joint["effort_limit"] for joint in printed.settings.MJLAB] == [28.4, 20.8]
    model = mujoco.MjModel.from_xml_path(str(printed.folder / "serial_repaired.xml"))
    assert model.jnt_actfrcrange[model.jnt_actfrclimited == 1].tolist() == [[-28.4, 28.4], [-20.8, 20.8]]
    rows = pd.read_csv(printed.folder / "serial_limits.csv")
    safe = rows[rows["kind"] == "safe box"]
    safe = safe[safe["quantity"] == "effort"]
    assert safe["high"].tolist() == [28.4, 20.8]
    assert set(safe["note"]) == {"proven by intervals"}
    x = np.array(list(product(np.linspace(-0.87, 0.52, 201), np.linspace(-0.26, 0.26, 201))))
    state = printed.transmission.motor_state(x)
    corners = np.array([[28.4, 20.8], [28.4, -20.8]])
    asked = np.abs(np.linalg.solve(state.transmission.swapaxes(1, 2)[:, None], corners[..., None]))[..., 0]
    counts = state.reached & (np.abs(state.transmission).max(axis=(1, 2)) < 6)
    assert asked[counts].max() < 25


@pytest.mark.extended("test_constants_of_a_differential_are_exact")
def test_a_mirrored_leg_gets_equal_settings(serial: Run, tmp_path: Path) -> None:
    text = (FOLDER / f"{G1}.toml").read_text(encoding="utf-8")
    vector = re.compile(r"^(anchor|axis|pin|end) = \[(.+), (.+), (.+)\]$", re.MULTILINE)

    def mirrored(match: re.Match[str]) -> str:
        x, y, z = map(float, match.groups()[1:])
        values = (-x, y, -z) if match[1] == "axis" else (x, -y, z)
        return f"{match[1]} = {list(values)}"

    path = tmp_path / "mirrored.toml"
    path.write_text(vector.sub(mirrored, text), encoding="utf-8")
    one, other = (serial(name).settings.ISAAC_LAB for name in (G1, str(path)))
    assert list(one["armature"].values()) == pytest.approx(list(other["armature"].values()), rel=1e-9)
    assert list(one["effort_limit_sim"]) == list(other["effort_limit_sim"])


@pytest.mark.extended("test_constants_of_a_differential_are_exact")
def test_equal_legs_near_a_singular_pose_get_equal_settings_that_are_never_worse(serial: Run, tmp_path: Path) -> None:
    legs = "".join(LEG.format(side=side, y=y) for side, y in (("R_", 0), ("L_", 0.13)))
    closures = "".join(f'<connect body1="{side}rod" body2="world" anchor="0 -.045 .113"/>' for side in ("R_", "L_"))
    motors = "".join(f'<motor joint="{side}hip"/><motor joint="{side}foot"/>' for side in ("R_", "L_"))
    path = tmp_path / "legs.xml"
    path.write_text(
        f'<mujoco><compiler angle="radian"/><worldbody>{legs}</worldbody><equality>{closures}</equality>'
        f"<actuator>{motors}</actuator></mujoco>",
        encoding="utf-8",
    )
    printed = serial(str(path), "--make")
    written = printed.settings.ISAAC_LAB["armature"]
    assert written["R_hip"] == pytest.approx(written["L_hip"], rel=1e-9)
    assert written["R_hip"] > 0.05
    rows = printed.table()
    assert (rows["armature_rms"] <= rows["plain_rms"] + 1e-3).all()
    assert (rows["constant_rms"] <= rows["plain_rms"] + 1e-3).all()
    random = rows[rows["motion"].str.startswith("random") & (rows["plain_rms"] > 0.05)]
    assert len(random) == 10
    assert (random["armature_rms"] < 0.5 * random["plain_rms"]).all()


@pytest.mark.evidence("a whole run with known constants", seconds=4.5)
def test_constants_of_a_differential_are_exact(serial: Run, tmp_path: Path) -> None:
    """Both rotors of .03125 kg m² turn with pitch by 2 and with roll by 3: armatures .25 and .5625, nothing else."""
    closed, other = tmp_path / "closed.xml", tmp_path / "other.xml"
    closed.write_text(DIFFERENTIAL.format(motors=ROTORS, rest=GEARS), encoding="utf-8")
    other.write_text(DIFFERENTIAL.format(motors="", rest=""), encoding="utf-8")
    printed = serial(str(closed), str(other))
    assert printed.armatures == pytest.approx({"pitch": 0.25, "roll": 0.5625}, rel=1e-6)
    assert printed.settings.ISAAC_LAB["armature"] == pytest.approx({"pitch": 0.25, "roll": 0.5625}, rel=1e-8)
    model = mujoco.MjModel.from_xml_path(str(printed.folder / "serial_repaired.xml"))
    assert model.dof_armature.tolist() == pytest.approx([0.25, 0.5625], rel=1e-8)
    assert not model.jnt_stiffness.any()
    assert not model.dof_damping.any()
    assert model.body_mass.tolist() == mujoco.MjModel.from_xml_path(str(other)).body_mass.tolist()
    assert printed.table()["constant_rms"].max() < 1e-7


@pytest.mark.extended("test_constants_of_a_differential_are_exact")
def test_a_source_without_rotors_gets_factors_and_no_file(serial: Run) -> None:
    printed = serial("agibot_x1_ankle_left")
    assert "states no rotor inertia; it is that of your rotor [kg m²] times 'per rotor'" in " ".join(
        printed.text.split()
    )
    files = {path.name for path in printed.folder.iterdir()}
    assert not files & {"serial_settings.py", "serial_repaired.xml", "serial_repaired.urdf"}
    factors = [float(row) for row in re.findall(r"│ as it is │ \S+ +│ \S+ +│ ([\d.]+) ", printed.text)]
    for seed in range(3):
        course = motion(np.array([[-0.35, 0.3], [-0.3, 0.3]]), seed)
        xdd = course[2]
        state = printed.transmission.motor_state(*course)
        inverse, peaks = np.linalg.inv(state.transmission).swapaxes(1, 2), np.abs(state.ydd).max(axis=0)
        error = [
            (np.sqrt(((np.einsum("taj,tj->ta", inverse, each * xdd) - state.ydd) ** 2).mean(axis=0)) / peaks).max()
            for each in (np.array(factors), np.array([2.0, 2.0]), np.zeros(2))
        ]
        best = np.linalg.lstsq(
            (inverse * xdd[:, None] / peaks[:, None]).reshape(-1, 2), (state.ydd / peaks).ravel(), rcond=None
        )[0]
        least = (np.sqrt(((np.einsum("taj,tj->ta", inverse, best * xdd) - state.ydd) ** 2).mean(axis=0)) / peaks).max()
        assert error[0] < 1.1 * least + 1e-3
        assert error[0] < 0.5 * min(error[1:])


@pytest.mark.extended("tests/validation/test_serial_writing.py::test_each_format_is_asked_for_the_kinds_that_it_holds")
def test_links_are_written_for_each_format_that_has_them(serial: Run) -> None:
    """The knee of RoboNex has heavy rods: links in MJCF with armature, in URDF without."""
    printed = serial("robonex_knee_left")
    rows = printed.table()
    random = rows[rows["motion"].str.startswith("random")]
    assert (random["constant_rms"] < 0.02).all()
    plain, own = (
        mujoco.MjModel.from_xml_path(str(printed.folder / name)) for name in ("stand_in.xml", "serial_repaired.xml")
    )
    assert own.body_mass.tolist() == plain.body_mass.tolist()
    assert not np.allclose(own.body_ipos, plain.body_ipos, atol=1e-4)
    assert not own.jnt_stiffness.any()
    assert "and limits of efforts" not in printed.text
    urdf = mujoco.MjModel.from_xml_path(str(printed.folder / "serial_repaired.urdf"))
    course = motion(INNER["robonex_knee_left"], 0)
    name = printed.transmission.joints[0].name
    assert urdf.joint(name).armature[0] == 0
    assert (rows["urdf_rms"] <= rows["plain_rms"] + 1e-3).all()
    data, efforts = mujoco.MjData(urdf), []
    urdf.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    for x, xd, xdd in zip(*course, strict=True):
        data.qpos[urdf.joint(name).qposadr[0]], data.qvel[urdf.joint(name).dofadr[0]] = x[0], xd[0]
        data.qacc[urdf.joint(name).dofadr[0]] = xdd[0]
        mujoco.mj_inverse(urdf, data)
        efforts.append([data.qfrc_inverse[urdf.joint(name).dofadr[0]]])
    before, after = (printed.errors(course, each) for each in (printed.joint_efforts(course), np.array(efforts)))
    assert after.max() < before.max() + 1e-3
