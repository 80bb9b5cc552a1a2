"""MuJoCo Warp 4.0.0: actuators of a group that is switched off act all the same."""

import mujoco
import mujoco_warp

PENDULUM = """
<mujoco><option gravity="0 0 0" actuatorgroupdisable="3"/><worldbody>
  <body><joint name="hinge" axis="0 1 0"/><geom size=".1"/></body></worldbody>
  <actuator><motor joint="hinge" group="3"/></actuator></mujoco>"""

model = mujoco.MjModel.from_xml_string(PENDULUM)
data = mujoco.MjData(model)
data.ctrl[:] = 1
on_device, world = mujoco_warp.put_model(model), mujoco_warp.put_data(model, data)
mujoco_warp.forward(on_device, world)
mujoco.mj_forward(model, data)
print(f"force of a disabled motor at a control of 1: MuJoCo {data.qfrc_actuator[0]:g}, MuJoCo Warp [N m]: ", end="")
print(f"{world.qfrc_actuator.numpy()[0][0]:.6g}")
