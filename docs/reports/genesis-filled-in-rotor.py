"""Genesis 1.4.5 adds a rotor of 0.1 kg m² to a hinge without armature in the MJCF: a rod becomes six times as heavy."""

import tempfile
from pathlib import Path

import genesis as gs

ROD = """<mujoco><worldbody><body><joint name="hinge" axis="0 1 0"/>
<inertial pos="0.2 0 0" mass="0.4" diaginertia="0.001 0.0053 0.0053"/></body></worldbody>
<actuator><motor joint="hinge"/></actuator></mujoco>"""
INERTIA = 0.0053 + 0.4 * 0.2**2  # of the rod about its hinge, by the file [kg m²]

gs.init(backend=gs.cpu, precision="64", logging_level="error")
path = Path(tempfile.mkdtemp()) / "rod.xml"
path.write_text(ROD, encoding="utf-8")


def inertia(**options: float | None) -> float:
    """Inertia of the loaded robot about its hinge [kg m²]."""
    scene = gs.Scene(show_viewer=False)
    robot = scene.add_entity(gs.morphs.MJCF(file=str(path), **options))
    scene.build()
    return float(robot.get_mass_mat()[0, 0])


print(f"default_armature=None: {inertia(default_armature=None) / INERTIA:.4f} of the inertia of the file")
print(f"as loaded, over the inertia of the file [-]: {inertia() / INERTIA:.4f}")
