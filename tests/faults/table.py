"""The table of faults: each fault in each route that it reaches, and the part of the harness that finds it."""

from collections.abc import Iterator
from typing import NamedTuple, get_args

from loopcheck import engines
from loopcheck.analytic.papers import Paper
from loopcheck.validation.check.independence import FROM_FILES, Shared, shares
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.common.verdicts import FILE
from tests.faults.adapters import OMITTED
from tests.faults.edits import EDITS
from tests.faults.seeds import READINGS, WRONG

JUDGED = tuple(
    name
    for name in sources.every_name()
    if name != sources.REFERENCE and name in registered() and registered()[name].relative_error is not None
)
"""Sources with a tolerance against the reference."""
SIMULATING = tuple(name for name in JUDGED if sources.simulates(name))
STEPPED = tuple(
    name
    for name in SIMULATING
    if name.split("/")[0] in {other.split("/")[0] for other in JUDGED if other not in SIMULATING}
)
"""Simulations by engines with a route at a state, which has the same model and all of its faults."""
TWINS = tuple(name for name in JUDGED if name.removesuffix("_single") in {*JUDGED} - {name})
"""Routes in single precision of a route in double precision, whose code they share: faults of their reading suffice."""
AS_IS = tuple(name for name in sources.every_name() if sources.is_as_is(name))
ENGINES = engines.engine_names()


class Row(NamedTuple):
    """A fault that must be found."""

    fault: str
    """Key of the fault."""
    route: str
    """Source or engine that it is seeded in."""
    found_by: str
    """Part of the harness, of `FINDERS`."""
    words: str
    """What is said of it, or a part."""
    robot: str = "3prr"

    @property
    def name(self) -> str:
        """Name of the test of the row."""
        return "-".join((self.found_by, self.fault, self.route, self.robot))


OF_STEPPED = ("mass 1 ppm", "mass centre", "gravity flipped", "axis flipped", "single precision", *READINGS)
"""Faults of the robot, the motion and the reading in `STEPPED`: the smallest that is found, and the largest."""
STANDING = ("analytic/lagrange", Paper.name, "mujoco/kkt", "pinocchio/kkt")
"""Sources with unmarked faults of shared inputs."""
FINE = ("mass 1 ppm", "single precision")
"""Faults smaller than the tolerance of some routes."""
UNRESOLVED = {
    *(("mass 1 ppm", name) for name in SIMULATING if name != "simbody/forward"),
    *(("single precision", f"{engine}/forward") for engine in ("mjx", "mujoco", "pinocchio")),
    *((fault, name) for fault in FINE for name in JUDGED if name.endswith("_single")),
}
"""Fine faults within the tolerance of a route."""
NOWHERE = {
    *(("velocity term", name) for name in (*SIMULATING, "pinocchio/lcaba", Paper.name)),
    ("axis flipped", Paper.name),  # the paper has its own axes
    *(("loop dropped", f"{engine}/forward") for engine in ("drake", "exudyn", "mjx", "mujoco", "pybullet")),
}
"""Faults without a place in a route; simulations without the velocity term are in `OMITTED`.

Without a loop, the steps of some engines take seconds: the audit of each finds it, and the comparison elsewhere.
"""
SAID = {
    ("mass centre", Paper.name): "mass centre of the platform must be 0.15 m as in the paper",
    ("joint damping", Paper.name): "does not include: armature, damping or spring of joint 'q1'",
    ("loop dropped", Paper.name): "the 3-PRR of the paper must have the closures 'q8' and 'q9'",
    ("axis flipped", "drake/forward"): "not run: drake: steps of 0.005 s: ",
    ("axis flipped", "exudyn/forward"): "not run: exudyn: SolveDynamic terminated",
    **{
        ("axis flipped", f"{engine}/forward"): "the simulation with dt = "
        for engine in ("mjx", "mujoco", "pinocchio", "simbody")
    },
    **{("one sign", name): "power imbalance" for name in sources.ANALYTIC},
}
"""Words on a fault that is no plain disagreement: the route refuses it, ends, or fails our own audits."""
OF_SHARED = {
    **{
        (fault, Paper.name): "does not include: armature, damping or spring"
        for fault in ("springs", "dampers", "rotors")
    },
    ("geometry", Paper.name): "platform point of q9 must be ",
}
"""Words on a fault of a shared input that is no plain disagreement."""
AUDITED = {
    "mass 1 %": "mass of platform",
    "mass 1 ppm": "mass of platform",
    "inertia about the joint": "principal moments of link",
    "mass centre": "mass centre of platform",
    "gravity turned": "gravity of robot",
    "gravity flipped": "gravity of robot",
    "axis flipped": "axis of q1",
    "joint damping": "damping of q6",
    "loop dropped": "constraint rows of robot must be 6, got 3",
    "closure acceleration": "closure acceleration of q",
}
"""Wrong quantity and element in every engine."""
HALF = "exactly: the logged column resembles half of the applied effort"
LATE = "the effort one hold late"
TOO_FINE = ("mass 1 ppm", "mass centre", "closure acceleration")
"""Faults that engines in single precision do not resolve."""
EDITED = {
    "mass": "mass of link2",
    "axis": "axis of q",
    "damping": "damping of q4",
    "damping of the URDF": "damping of q6",
    "damping of the air": "damping of q1",
    "armature": "armature of ",
    "stiffness": "stiffness of q4",
    "gravity": "gravity of robot",
    "mass centre": "mass centre of platform",
    "principal moments": "principal moments of ",
    "constraint rows": "constraint rows of robot must be 6, got 3",
    "opening of the loops": "opening of the loops of robot",
    "gear": "gear of q2",
    "dry friction": "dry friction of q1",
    "anchor": "anchor of q5",
}
"""Wrong quantity and element of each edit of an engine's model."""
READ_OTHERWISE = (
    *((name, "law at the start") for name in ("newton/as_is_kamino", "newton/as_is_mujoco", "newton/as_is_steel")),
    ("genesis/as_is", "law at the start"),
    ("newton/as_is_mujoco", "reported as effort"),
    ("physx/as_is_tgs", "law as effort"),
)
"""Other numbers than the effort in logs of engines with drives of their own."""
IN_FILES = {
    "gears": "gear of ",
    "inertia": "mass of platform",
    "geometry": "opening of the loops of robot",
    "springs": "stiffness of ",
    "dampers": "damping of ",
    "rotors": "armature of ",
    "loads": "external moment of ",
    "gravity": "gravity of robot",
}
"""Quantity of the files for each fault of their numbers."""


def _in_sources() -> Iterator[Row]:
    """Faults of the robot, the motion, the reading and the adapter of each judged source."""
    for route in JUDGED:
        for fault in (*WRONG, *OMITTED.get(route, ())):
            is_in_twin = route in TWINS and fault not in (*READINGS, "gravity flipped")
            is_at_a_state = route in STEPPED and fault not in (*OF_STEPPED, *OMITTED.get(route, ()))
            if (fault, route) not in UNRESOLVED | NOWHERE and not is_in_twin and not is_at_a_state:
                robot = "slider_crank" if (fault, route) == ("loose loops", "pybullet/forward") else "3prr"
                yield Row(fault, route, "comparison", SAID.get((fault, route), "disagree"), robot)


def _in_shared_inputs() -> Iterator[Row]:
    """Faults of inputs that the reference has, too: in each source that does not share them, or else in the files."""
    of_3prr = [fault for fault in get_args(Shared) if fault != "loads"]
    for fault in FROM_FILES:
        yield Row(fault, FILE, "second reading", IN_FILES[fault], "6spu" if fault == "loads" else "3prr")
        yield Row(fault, FILE, "second reading", IN_FILES[fault], "6spu")
    yield Row("gears", FILE, "second reading", IN_FILES["gears"], "2pur2rpu")  # mujoco/forward leaves this motor off
    for route in JUDGED:
        for fault in () if route in (*TWINS, *STEPPED) else of_3prr:
            if fault == "ranks":  # seen by the reference's own audit, whatever the route
                if route not in STANDING:
                    continue
                yield Row(fault, route, SHARED_INPUT, "the reference cannot be trusted: power imbalance")
            elif fault not in shares(route):
                yield Row(fault, route, SHARED_INPUT, OF_SHARED.get((fault, route), "disagree"))
    for route in ("analytic/lagrange", "mujoco/kkt", "pinocchio/kkt", "pybullet/kkt"):
        yield Row("velocity term", route, SHARED_INPUT, "disagree", "bricard")
    yield Row("geometry", "mujoco/kkt", SHARED_INPUT, "closure drift must be at most 3.09e-06 m, got 0.0001 m", "6spu")


def _in_engines() -> Iterator[Row]:
    """Faults of the model in each engine."""
    for engine in ENGINES:
        is_single = engines.engine(engine).single_precision
        for fault in (fault for fault in AUDITED if not (is_single and fault in TOO_FINE)):
            refused = (
                "spring or damper of the driven joint 'q1'" if (fault, engine) == ("joint damping", "physx") else ""
            )
            yield Row(fault, engine, "audit", refused or AUDITED[fault])
        for fault in EDITS.get(engine, ()):
            robot = "models/four_bar" if (engine, fault) == ("pybullet", "armature") else "3prr"
            yield Row(f"edit: {fault}", engine, "audit", EDITED[fault], robot)


def _in_logs() -> Iterator[Row]:
    """Other numbers than the effort in the logs of unmodified simulations, and defaults that an engine fills in."""
    for route in AS_IS:
        yield Row("drive twice", route, "as_is", HALF, "four_bar")
    yield Row("loops open", "mujoco/as_is", "as_is", "", "four_bar")
    for route in ("mujoco/as_is", "mujoco_warp/as_is", "mjx/as_is"):
        late = LATE if route == "mujoco/as_is" else "a larger error"  # as large as the error of the ports
        yield Row("drive twice", route, "as_is", HALF, "rotors/four_bar")
        yield Row("one step late", route, "as_is", late, "rotors/four_bar")
        yield Row("reaction as effort", route, "as_is", "the reaction of its joint", "rotors/four_bar")
    for fault in ("drive twice", "one step late", "reaction as effort"):  # ports of MuJoCo compile for seconds
        yield Row(fault, "mujoco/as_is", "as_is", "a larger error", "rotors/3prr")
    for route, fault in READ_OTHERWISE:
        yield Row(fault, route, "as_is", "a larger error", "four_bar")
    for route in AS_IS:
        for fault in OMITTED.get(route, ()):
            yield Row(fault, route, "as_is", "a larger error", "four_bar")


SHARED_INPUT = "comparison of shared input"
TABLE = tuple(dict.fromkeys((*_in_sources(), *_in_shared_inputs(), *_in_engines(), *_in_logs())))


EXAMPLES = ("mass 1 ppm", "gravity flipped")
"""Unmarked faults of sources that compute at a state."""


def is_cheap(row: Row) -> bool:
    """Whether the test of a row takes at most half a second of CPU time, and stands for others."""
    fault, route = row.fault, row.route
    if route.startswith("mjx") or row.robot not in ("3prr", "four_bar", "rotors/four_bar", "models/four_bar"):
        return False
    return (
        {
            "audit": route != "exudyn" or fault in EXAMPLES,
            "second reading": True,
            "as_is": route == "mujoco/as_is",
            "comparison": fault in EXAMPLES or route == "mujoco/kkt",
            SHARED_INPUT: route in STANDING,
        }[row.found_by]
        and (route not in SIMULATING)
    ) or (fault == "one step late" and route in SIMULATING)
