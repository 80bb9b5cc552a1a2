"""MuJoCo 4.0: a stiff velocity servo under implicitfast opens a loop that the same servo holds shut when weak."""

import mujoco
import numpy as np

MODEL = """<mujoco><option gravity="0 -9.81 0" timestep="0.002" integrator="{integrator}"/>
<default><joint type="hinge" axis="0 0 1"/></default>
<worldbody>
  <body><joint name="crank"/><inertial pos="0.2 0 0" mass="0.4" diaginertia="0.005 0.005 0.005"/>
    <body pos="0.4 0 0"><joint/><inertial pos="0.55 0 0" mass="1.1" diaginertia="0.11 0.11 0.11"/>
      <site name="end" pos="1.1 0 0"/></body></body>
  <body pos="1 0 0"><joint/><inertial pos="0.4 0 0" mass="0.8" diaginertia="0.043 0.043 0.043"/>
    <site name="C" pos="0.8 0 0"/></body>
</worldbody>
<equality><connect site1="end" site2="C"/></equality>
<actuator><velocity joint="crank" kv="{kv}"/></actuator></mujoco>"""
CLOSED = [0.5, 0.021341945343874125, 1.1797837644701707]


def gap(kv: float, integrator: str = "implicitfast") -> float:
    """Gap of the loop after 0.25 s in which the servo turns the crank by 0.2 sin(2 pi t) rad [m]."""
    model = mujoco.MjModel.from_xml_string(MODEL.format(kv=kv, integrator=integrator))
    data, widest = mujoco.MjData(model), 0.0
    data.qpos[:] = CLOSED
    for k in range(125):
        target = CLOSED[0] + 0.2 * np.sin(2 * np.pi * (k + 1) * model.opt.timestep)
        data.ctrl[0] = (target - data.qpos[0]) / model.opt.timestep
        mujoco.mj_step(model, data)
        widest = max(widest, float(np.linalg.norm(data.site("end").xpos - data.site("C").xpos)))
    return widest


for kv in (10, 100, 1000):
    print(f"kv = {kv} N m s/rad: the loop opens by {gap(kv):.4f} m, under discrete by {gap(kv, 'discrete'):.4f} m")
print(f"widest gap at kv = 1000 [m]: {gap(1000):.4f}")
