"""MuJoCo 4.0: links that do not fit are held apart by any force, without a word."""

import mujoco
import numpy as np

MODEL = """<mujoco><option gravity="0 0 0"/>
<default><joint type="hinge" axis="0 0 1" damping="1"/><equality {solref}/></default>
<worldbody>
  <body><joint/><inertial pos="0.2 0 0" mass="0.4" diaginertia="0.005 0.005 0.005"/>
    <body pos="0.4 0 0"><joint/><inertial pos="0.55 0 0" mass="1.1" diaginertia="0.11 0.11 0.11"/>
      <site name="end" pos="1.1 0 {apart}"/></body></body>
  <body pos="1 0 0"><joint/><inertial pos="0.4 0 0" mass="0.8" diaginertia="0.043 0.043 0.043"/>
    <site name="C" pos="0.8 0 0"/></body>
</worldbody>
<equality><connect site1="end" site2="C"/></equality></mujoco>"""
CLOSED = [0.5, 0.021341945343874125, 1.1797837644701707]


def pull(apart: float, solref: str = "") -> float:
    """Force of the loop at rest without gravity, its pins that far beside each other [m], over the weight [-]."""
    model = mujoco.MjModel.from_xml_string(MODEL.format(apart=apart, solref=solref))
    data = mujoco.MjData(model)
    data.qpos[:] = CLOSED
    for _ in range(2000):
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() < 1e-6
    assert not any(warning.number for warning in data.warning)
    return float(np.linalg.norm(data.efc_force[:3]) / (9.81 * model.body_mass.sum()))


stiff = pull(2e-3, 'solref="0.001 1"')
print(f"pins that meet: {pull(0):.2g} weights; 2 mm apart with a solref of 1 ms: {stiff:.0f} weights")
print(f"force of the loop with pins 2 mm apart and default solref, over the weight [-]: {pull(2e-3):.2f}")
