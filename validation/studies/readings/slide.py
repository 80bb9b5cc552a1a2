"""Readings of a slide's drive, against the change of its momentum."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import HarnessError, NotRepresentableError
from loopcheck.robots.log import Log
from loopcheck.robots.robot import Case, MotionSpec, Robot, representative_case
from loopcheck.validation.common import sources
from loopcheck.validation.common.verdicts import MEASURED, NOT_SUPPORTED

MASS = 2.0
"""Mass of the slide [kg]."""
LIMIT = 7.0
"""Force limit [N], below the 7.9 N that the motion requires."""
DRIVES = {
    "motor": '<motor name="drive" joint="x"/>',
    "position servo": '<position name="drive" joint="x" kp="2000" kv="60"/>',
    "velocity servo": '<velocity name="drive" joint="x" kv="400"/>',
    "limited position servo": f'<position name="drive" joint="x" kp="2000" kv="60" forcerange="{-LIMIT} {LIMIT}"/>',
    "limited velocity servo": f'<velocity name="drive" joint="x" kv="400" forcerange="{-LIMIT} {LIMIT}"/>',
}
INTEGRATORS = ("Euler", "implicit", "implicitfast", "discrete", "RK4")
OWN = "of the engine"
"""Drive and integrator of an engine that does not take them from the file."""
EFFORT = "effort"
"""The effort that loopcheck judges."""
READS_FILE = ("mujoco", "mjx", "mujoco_warp")
"""Engines that take drive and integrator from the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slide:
    """A body on a slide without gravity or friction, with a drive."""

    drive: str
    integrator: str

    def case(self, folder: Path) -> Case:
        """The slide as a robot that moves to and fro; its model file is written to a folder."""
        path = folder / f"slide-{self.integrator}-{self.drive.replace(' ', '-')}.xml"
        path.write_text(
            f"""<mujoco model="slide">
  <option integrator="{self.integrator}" timestep="0.002" gravity="0 0 0"/>
  <worldbody>
    <body name="slide">
      <joint name="x" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="{MASS}" diaginertia="0.01 0.01 0.01"/>
    </body>
  </worldbody>
  <actuator>{DRIVES[self.drive]}</actuator>
</mujoco>
""",
            encoding="utf-8",
        )
        motion = MotionSpec(law="sine", parameters={"amplitude": 0.1, "frequency": 1.0, "duration": 1.0})
        robot = Robot(
            name=path.stem, folder=folder, title="slide", mjcf=path.name, motion=motion, source="change of momentum"
        )
        return representative_case(robot)


def slides(source: str) -> list[Slide]:
    """Slides for a route: every drive and integrator, if the engine takes them from the file."""
    if sources.engine_of(source) not in READS_FILE:
        return [Slide(drive="motor", integrator="Euler")]
    return [Slide(drive=drive, integrator=integrator) for integrator in INTEGRATORS for drive in DRIVES]


def measured(source: str, cases: Sequence[tuple[Slide, Case]]) -> list[dict[str, Any]]:
    """A row for each reading of a route on each slide, or a row with the reason of a failure."""
    return [row for slide, case in cases for row in _measured(source, slide, case)]


def not_measured(source: str, cases: Sequence[tuple[Slide, Case]], reason: str) -> list[dict[str, Any]]:
    """Rows of a lost task."""
    return [{**_about(source, slide), "verdict": "not run", "note": reason} for slide, _ in cases]


def unreadable(source: str, slide: Slide, reason: str) -> dict[str, Any]:
    """The row of a slide that the installed MuJoCo cannot read."""
    return {**_about(source, slide), "verdict": NOT_SUPPORTED, "note": reason}


def _measured(source: str, slide: Slide, case: Case) -> Iterator[dict[str, Any]]:
    about = _about(source, slide)
    try:
        history = sources.load(source).compute_efforts(case, prescribe(case))
    except NotRepresentableError as error:
        yield {**about, "verdict": NOT_SUPPORTED, "note": str(error)}
    except HarnessError as error:
        yield {**about, "verdict": "not run", "note": str(error)}
    else:
        assert history.as_is is not None
        note = history.settings.get("actuators", "")
        yield from ({**about, "verdict": MEASURED, "note": note, **row} for row in _rows(history.as_is.log))


def _about(source: str, slide: Slide) -> dict[str, Any]:
    reads = sources.engine_of(source) in READS_FILE
    return {
        "source": source,
        "integrator": slide.integrator if reads else OWN,
        "drive": slide.drive if reads else OWN,
    }


def _rows(log: Log) -> Iterator[dict[str, Any]]:
    """Largest values of the readings, and their largest distance from the effort that acted."""
    velocities = log.qd
    assert velocities is not None
    acted = MASS * np.diff(velocities[:, 0]) / log.dt
    for reading, values in {EFFORT: log.effort, **log.readings}.items():
        reported = values[:-1, 0]
        if np.isnan(reported).any():
            continue
        yield {
            "reading": reading,
            "acted": np.abs(acted).max(),
            "reported": np.abs(reported).max(),
            "difference": np.abs(reported - acted).max() / np.abs(acted).max(),
        }
