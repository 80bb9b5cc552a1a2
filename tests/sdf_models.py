"""The upright four-bar of `planar_four_bar` as an SDF, with frames of every kind; all joints are zero at START."""

from pathlib import Path

import numpy as np

from tests.planar_four_bar import COUPLER, CRANK, GROUND, ROCKER, START, terms

CRANK_ANGLE, COUPLER_ANGLE, ROCKER_ANGLE = map(float, terms(START).positions)
"""Angles of the bars at START, of the coupler relative to the crank [rad]."""


def bar(name: str, length: float, pose: str) -> str:
    """A link with the inertia of a rod along X, in an inertial frame that is turned."""
    thin, about = 1e-3 * length**3 / 12, length * length**2 / 12
    return (
        f'<link name="{name}">{pose}<inertial><pose degrees="true">{length / 2!r} 0 0 0 0 90</pose>'
        f"<mass>{length}</mass>\n<inertia><ixx>{about!r}</ixx><iyy>{thin!r}</iyy><izz>{about!r}</izz></inertia>"
        "</inertial><visual name='v'><geometry><box><size>1 1 1</size></box></geometry></visual></link>"
    )


def hinge(name: str, parent: str, child: str, more: str = "", axis: str = "<axis><xyz>0 0 1</xyz></axis>") -> str:
    """A joint about Z of its child."""
    return f'<joint name="{name}" type="revolute">{more}<parent>{parent}</parent><child>{child}</child>{axis}</joint>'


LINKS = (
    '<frame name="base"><pose>0.1 0 0 0 0 0</pose></frame>'
    + bar("crank", CRANK, f'<pose relative_to="base">0 0 0 0 0 {CRANK_ANGLE!r}</pose>')
    + bar("coupler", COUPLER, f'<pose relative_to="crank">{CRANK} 0 0 0 0 {COUPLER_ANGLE!r}</pose>')
    + bar("rocker", ROCKER, f'<pose relative_to="base">{GROUND} 0 0 0 0 {ROCKER_ANGLE!r}</pose>')
    + f'<frame name="end" attached_to="rocker"><pose>{ROCKER} 0 0 0.4 0 0</pose></frame>'
)
JOINTS = (
    hinge("crank_joint", "world", "crank")
    + hinge("coupler_joint", "crank", "coupler")
    + hinge("rocker_joint", "world", "rocker", axis='<axis><xyz expressed_in="base">0 0 1</xyz></axis>')
)
LOOP = hinge("loop", "coupler", "end", axis='<axis><xyz expressed_in="__model__">0 0 1</xyz></axis>')
DRIVE = '<plugin name="gz::sim::systems::JointController" filename="f"><joint_name>crank_joint</joint_name></plugin>'
UPRIGHT = f"<pose>0 0 0.3 {np.pi / 2!r} 0 0</pose>"


def sdf(model: str = LINKS + JOINTS + LOOP + DRIVE, *, world: str = "<gravity>0 0 -9.81</gravity>") -> str:
    """An SDF with a world; the model stands upright."""
    return (
        f'<?xml version="1.0"?>\n<sdf version="1.9">\n<world name="w">{world}\n<model name="m">{UPRIGHT}\n{model}\n'
        "</model></world></sdf>\n"
    )


def write_sdf(folder: Path, text: str = sdf()) -> Path:
    """Write an SDF."""
    path = folder / "model.sdf"
    path.write_text(text, encoding="utf-8")
    return path
