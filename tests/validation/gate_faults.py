"""Modelling faults, written into models of this repository by rule and with a seed, and the gate's answers to them.

`python -m tests.validation.gate_faults [COUNT [SEED]]` prints found, missed and false findings by code.
"""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco  # noqa: TID251
import numpy as np

from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.size import size
from loopcheck.validation.gate.gate import gate, model_path

SOUND = ("2pur2rpu", "3rrr", "3prr", "6spu", "6x6r", "four_bar", "slider_crank", "andrews", "n_four_bar_2")
FILES = ("robots/legs/ankle.xml", "robots/legs/knee.xml", "tests/models/strutted_four_bar.xml")
ROOT = Path(__file__).parents[2]
Place = Callable[[Any, np.random.Generator, float], str]
"""Changes a specification with random numbers and the size of the robot; returns the element that the gate must name,
empty for a finding on the file, or "-" if the fault does not fit the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of modelling fault."""

    code: str
    """Code of the finding that must be there."""
    place: Place
    or_else: str = ""
    """Another code that is right: an anchor that leaves the plane of its loop is open in every pose."""


def _equality(spec: Any, random: np.random.Generator) -> Any:
    kinds = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
    rigid = [equality for equality in spec.equalities if equality.type in kinds]
    return rigid[random.integers(len(rigid))] if rigid else None


def _moved_anchor(spec: Any, random: np.random.Generator, distance: float) -> str:
    """Move an anchor or a site of a loop by a distance [m]."""
    equality = _equality(spec, random)
    if equality is None:
        return "-"
    direction = random.normal(size=3)
    shift = distance * direction / np.linalg.norm(direction)
    if equality.objtype == mujoco.mjtObj.mjOBJ_SITE:
        site = spec.site(equality.name1)
        users = [e for e in spec.equalities if site.name in (e.name1, e.name2)]
        if len(users) > 1:
            return "-"
        site.pos = site.pos + shift
    else:
        return "-"
    return f"equality '{equality.name}'"


def _too_far(spec: Any, random: np.random.Generator, length: float) -> str:
    return _moved_anchor(spec, random, 30 * length)


def _ajar(spec: Any, random: np.random.Generator, length: float) -> str:
    return _moved_anchor(spec, random, 0.01 * length)


def _pinned_drive(spec: Any, random: np.random.Generator, length: float) -> str:
    """Hold the joint of a drive by an equality."""
    drives = [a for a in spec.actuators if a.trntype == mujoco.mjtTrn.mjTRN_JOINT]
    drive = drives[random.integers(len(drives))]
    equality = spec.add_equality()
    equality.type, equality.objtype = mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT
    equality.name, equality.name1 = "hold", drive.target
    _hold_at_start(spec, equality)
    return f"actuator '{drive.name}'" if len(drives) > 1 else ""


def _hold_at_start(spec: Any, equality: Any) -> None:
    """Hold the joint of an equality where the first keyframe, or else the file, has it."""
    model = spec.copy().compile()
    column = model.joint(equality.name1).qposadr[0]
    start = model.key_qpos[0] if model.nkey else model.qpos0
    equality.data[0] = start[column] - model.qpos0[column]


def _unknown_joint(spec: Any, random: np.random.Generator, length: float) -> str:
    return ""  # a specification that does not compile has no text: the text is changed


def _locked(spec: Any, random: np.random.Generator, length: float) -> str:
    """Weld every body with a drive to the world."""
    joints = {a.target for a in spec.actuators}
    for joint in spec.joints:
        if joint.name in joints:
            equality = spec.add_equality()
            equality.type, equality.objtype = mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT
            equality.name, equality.name1 = f"hold {joint.name}", joint.name
            _hold_at_start(spec, equality)
    return ""


def _range_elsewhere(spec: Any, random: np.random.Generator, length: float) -> str:
    joints = [j for j in spec.joints if j.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)]
    joint = joints[random.integers(len(joints))]
    far = 60.0 if spec.compiler.degree and joint.type == mujoco.mjtJoint.mjJNT_HINGE else 1.0
    joint.range, joint.limited = (joint.ref + np.array([far, 2 * far])), mujoco.mjtLimited.mjLIMITED_TRUE
    return f"joint '{joint.name}'"


def _grams(spec: Any, random: np.random.Generator, length: float) -> str:
    """Give the inertia of a body in kg mm²."""
    bodies = [b for b in spec.bodies if b.name != "world" and b.explicitinertial and b.mass and np.any(b.inertia)]
    if not bodies:
        return "-"
    body = bodies[random.integers(len(bodies))]
    if np.any(np.nan_to_num(body.fullinertia)):
        body.fullinertia = body.fullinertia * 1e6
    else:
        body.inertia = body.inertia * 1e6
    return f"body '{body.name}'"


def _gear(spec: Any, random: np.random.Generator, length: float) -> str:
    drive = spec.actuators[random.integers(len(spec.actuators))]
    joint = spec.joint(drive.target)
    if joint is None:
        return "-"
    joint.armature, drive.gear = 0.0, np.array([random.uniform(20, 100), 0, 0, 0, 0, 0])
    return f"actuator '{drive.name}'"


def _stiff_loop(spec: Any, random: np.random.Generator, length: float) -> str:
    equality = _equality(spec, random)
    if equality is None:
        return "-"
    equality.solref = np.array([-1e9, -1e3])
    return f"equality '{equality.name}'"


def _stiff_servo(spec: Any, random: np.random.Generator, length: float) -> str:
    drive = spec.actuators[random.integers(len(spec.actuators))]
    drive.set_to_position(kp=1e10)
    return f"actuator '{drive.name}'"


def _centimetres_of_gravity(spec: Any, random: np.random.Generator, length: float) -> str:
    spec.option.gravity = np.array([0, 0, -9810.0])
    return ""


def _twice(spec: Any, random: np.random.Generator, length: float) -> str:
    """Add a closure a second time."""
    first = _equality(spec, random)
    if first is None:
        return "-"
    second = spec.add_equality()
    second.type, second.objtype, second.data = first.type, first.objtype, first.data
    second.name, second.name1, second.name2 = "again", first.name1, first.name2
    return "equality 'again'"


def _fewer_drives(spec: Any, random: np.random.Generator, length: float) -> str:
    if len(spec.actuators) < 2:
        return "-"
    spec.delete(spec.actuators[random.integers(len(spec.actuators))])
    return ""


FAULTS: Mapping[str, Fault] = {
    "anchor out of reach": Fault(code="LC102", place=_too_far),
    "anchor off by a hundredth": Fault(code="LC201", place=_ajar, or_else="LC102"),
    "joint of a drive held": Fault(code="LC104", place=_pinned_drive),
    "all driven joints held": Fault(code="LC103", place=_locked),
    "unknown joint": Fault(code="LC101", place=_unknown_joint),
    "range away from the start": Fault(code="LC202", place=_range_elsewhere),
    "inertia in kg mm²": Fault(code="LC205", place=_grams),
    "gear without rotor": Fault(code="LC206", place=_gear),
    "loop too stiff": Fault(code="LC207", place=_stiff_loop),
    "servo too stiff": Fault(code="LC207", place=_stiff_servo),
    "gravity in mm/s²": Fault(code="LC208", place=_centimetres_of_gravity),
    "closure twice": Fault(code="LC301", place=_twice),
    "drive missing": Fault(code="LC302", place=_fewer_drives),
}
"""The kinds of faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A model with a fault."""

    fault: str
    model: str
    code: str
    element: str
    found: bool
    """Whether a finding has the code and the element."""
    others: tuple[str, ...]
    """Errors that neither the sound model nor this fault has."""


def models() -> list[Path]:
    """Sound models of the repository."""
    return [*(model_path(name) for name in SOUND), *(ROOT / file for file in FILES)]


def trials(count: int, folder: Path, seed: int = 0) -> Iterator[Trial]:
    """Try seeded faults, the kinds in turn, each in a model that has the element."""
    random, paths = np.random.default_rng(seed), models()
    sound = {path: {f.code for f in gate(str(path)).findings} for path in paths}
    done = 0
    while done < count:
        name = list(FAULTS)[done % len(FAULTS)]
        path = paths[random.integers(len(paths))]
        trial = _trial(name, path, random, folder / f"{done}.xml", sound[path])
        if trial is not None:
            yield trial
            done += 1


def _trial(name: str, path: Path, random: np.random.Generator, changed: Path, sound: set[str]) -> Trial | None:
    fault, spec = FAULTS[name], mujoco.MjSpec.from_file(str(path))
    for kind in ("equalities", "actuators"):
        for k, element in enumerate(getattr(spec, kind)):
            element.name = element.name or f"{kind}{k}"
    if any(joint.type == mujoco.mjtJoint.mjJNT_SLIDE for joint in spec.joints) and fault.place is _too_far:
        return None  # a slide without limits reaches any anchor
    length = size(read_mechanism(ModelFile(path=path)))
    element = fault.place(spec, random, length)
    if element == "-" or (not element and fault.code in sound):
        return None  # a finding on the whole file that the sound model has proves nothing
    text = spec.to_xml()
    if name == "unknown joint":
        head, mark, tail = text.partition("<actuator>")
        text = head + mark + re.sub(r' (joint|tendon)="[^"]*"', r' \1="no_such"', tail, count=1)
    changed.write_text(text, encoding="utf-8")
    findings = gate(str(changed)).findings
    code = "LC103" if fault.code == "LC104" and not element else fault.code
    found = any(f.code in (code, fault.or_else) and (not element or f.element == element) for f in findings)
    consequences = {code, "LC102", "LC103", "LC104"} if code.startswith("LC1") else {code, fault.or_else}
    errors = {f.code for f in findings if f.severity == "error"} - sound - consequences
    others = tuple(sorted(errors))
    return Trial(fault=name, model=path.stem, code=code, element=element, found=found, others=others)


def main(count: int = 200, seed: int = 0) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        done = list(trials(count, Path(folder), seed))
    tried, found = Counter(t.fault for t in done), Counter(t.fault for t in done if t.found)
    false = Counter(t.fault for t in done if t.others)
    print(f"{'fault':28}{'code':8}{'seeded':>8}{'found':>8}{'missed':>8}{'false':>8}")  # noqa: T201
    for name, fault in FAULTS.items():
        counts = (tried[name], found[name], tried[name] - found[name], false[name])
        print(f"{name:28}{fault.code:8}" + "".join(f"{n:8}" for n in counts))  # noqa: T201
    print(f"{'all':36}{len(done):8}{sum(found.values()):8}{len(done) - sum(found.values()):8}{sum(false.values()):8}")  # noqa: T201
    for trial in done:
        if not trial.found or trial.others:
            print(trial)  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
