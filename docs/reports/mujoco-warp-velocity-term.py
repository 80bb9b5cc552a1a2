"""MuJoCo Warp 4.0.0: the velocity term J̇v of connect and weld equalities is that of the state before."""

import mujoco
import mujoco_warp
import numpy as np

FOUR_BAR = """
<mujoco><worldbody>
  <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" contype="0" conaffinity="0"/>
    <body pos=".3 0 0"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .9 0 0" size=".02" contype="0" conaffinity="0"/><site name="tip" pos=".9 0 0"/>
    </body></body>
  <body pos=".8 0 0"><joint axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.7" size=".02" contype="0" conaffinity="0"/><site name="end" pos="0 0 -.7"/>
  </body></worldbody>
  <equality><connect site1="tip" site2="end" solref="0 0"/></equality></mujoco>"""  # without feedback: aref = −J̇v

model = mujoco.MjModel.from_xml_string(FOUR_BAR)
data = mujoco.MjData(model)
data.qpos[:], data.qvel[:] = (0.3, 0.4, 0.1), (1, 2, -1)
on_device = mujoco_warp.put_model(model)
world = mujoco_warp.put_data(model, data)
for call in ("first", "second"):
    mujoco_warp.forward(on_device, world)
    print(f"{call} forward at one state: aref {world.efc.aref.numpy()[0][:3]}")
data.qvel[:] *= -2  # J̇v is a square of the velocities: four times as large
world.qvel.assign(data.qvel[None].astype(np.float32))
mujoco_warp.forward(on_device, world)
mujoco.mj_forward(model, data)
late, right = world.efc.aref.numpy()[0][:3], data.efc_aref[:3]
print(f"after the velocities are changed: aref {late}, in MuJoCo {right}")
print(f"error of J̇v over itself [-]: {np.linalg.norm(late - right) / np.linalg.norm(right):.6g}")
