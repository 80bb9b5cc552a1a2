"""A chain of four-bar linkages of any length, each on the crank of the linkage before."""

import tempfile
from pathlib import Path

from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.mjcf import read_mechanism
from loopcheck.robots.model_file import ModelFile

CRANK = """<body name="crank{k}" pos="{x} 0 0"><joint name="a{k}" axis="0 0 1"/>{inertia}
<body name="coupler{k}" pos="0 0.2 0"><joint name="b{k}" axis="0 0 1"/>{inertia}</body>"""
ROCKER = """<body name="rocker{k}" pos="{x} 0 0"><joint name="d{k}" axis="0 0 1"/>{inertia}</body>"""
INERTIA = '<inertial pos="0 0.1 0" mass="0.5" diaginertia="2e-3 1e-3 3e-3"/>'


def four_bar_chain(n: int) -> Mechanism:
    """The mechanism of n four-bars, closed at q = 0, a motor on each crank: 3n bodies, n loops."""
    inside = ""
    for k in reversed(range(n)):
        x = 0.0 if k == 0 else 0.02
        crank = CRANK.format(k=k, x=x, inertia=INERTIA)
        inside = f"{crank}{inside}</body>{ROCKER.format(k=k, x=x + 0.3, inertia=INERTIA)}"
    loops = "".join(
        f'<connect name="c{k}" body1="coupler{k}" body2="rocker{k}" anchor="0.3 0.05 0"/>' for k in range(n)
    )
    motors = "".join(f'<motor name="m{k}" joint="a{k}"/>' for k in range(n))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"chain{n}.xml"
        path.write_text(
            f'<mujoco model="chain{n}"><option gravity="0 -9.81 0"/><worldbody>{inside}</worldbody>'
            f"<equality>{loops}</equality><actuator>{motors}</actuator></mujoco>",
            encoding="utf-8",
        )
        return read_mechanism(ModelFile(path=path))
