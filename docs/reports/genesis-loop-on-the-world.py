"""Genesis 1.4.5 refuses an MJCF with an equality between a site and a site of the world; in a fixed body it loads."""

import tempfile
from pathlib import Path

import genesis as gs

LOOP = """<body><joint axis="0 1 0"/><inertial pos="0.2 0 0" mass="0.4" diaginertia="0.01 0.01 0.01"/>
<body pos="0.4 0 0"><joint axis="0 1 0"/><inertial pos="0.2 0 0" mass="0.4" diaginertia="0.01 0.01 0.01"/>
<site name="end" pos="0.4 0 0"/></body></body><site name="pin" pos="0.8 0 0"/>"""
FIXED = '<body name="ground"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{}</body>'
MODEL = '<mujoco><worldbody>{}</worldbody><equality><connect site1="end" site2="pin"/></equality></mujoco>'

gs.init(backend=gs.cpu, precision="64", logging_level="error")


def loads(world: str) -> bool:
    """Return whether a scene with it can be built."""
    path = Path(tempfile.mkdtemp()) / "loop.xml"
    path.write_text(MODEL.format(world), encoding="utf-8")
    scene = gs.Scene(show_viewer=False)
    try:
        scene.add_entity(gs.morphs.MJCF(file=str(path)))
        scene.build()
    except gs.GenesisException as error:
        print("refused:", error)
        return False
    return True


print("inside a fixed body it loads:", loads(FIXED.format(LOOP)))
print(f"with the pin on the world, part of the files that load [-]: {float(loads(LOOP)):.1f}")
