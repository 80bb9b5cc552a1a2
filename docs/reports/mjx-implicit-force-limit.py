"""MJX 3.17: implicitfast keeps the damping of a servo that is at its force limit."""

import jax
import mujoco
from mujoco import mjx

jax.config.update("jax_enable_x64", True)

SLIDE = """
<mujoco><option integrator="implicitfast" timestep=".002" gravity="0 0 0"/><worldbody>
  <body><joint name="x" type="slide"/><geom size=".1" mass="2"/></body></worldbody>
  <actuator><velocity joint="x" kv="400" ctrlrange="-1 1" forcerange="-7 7"/></actuator></mujoco>"""

model = mujoco.MjModel.from_xml_string(SLIDE)
data = mujoco.MjData(model)
data.ctrl[:] = 1
on_device, world = mjx.put_model(model), mjx.put_data(model, data)
mujoco.mj_step(model, data)
after = mjx.step(on_device, world)
acted = {name: 2 * float(velocity[0]) / 0.002 for name, velocity in (("MuJoCo", data.qvel), ("MJX", after.qvel))}
print(
    f"reported {float(after.actuator_force[0]):g} N, acted in MuJoCo {acted['MuJoCo']:g} N; acted over reported in MJX:"
)
print(f"{acted['MJX'] / float(after.actuator_force[0]):.6g}")
