"""MuJoCo Warp 4.0.0: rows of equalities above 64 are dropped unless MuJoCo has computed the data before."""

import mujoco
import mujoco_warp

PAIRS = 30
BODY = '<body name="{0}{1}"><joint axis="0 1 0"/><geom size=".1" contype="0" conaffinity="0"/></body>'
bodies = "".join(BODY.format(side, k) for k in range(PAIRS) for side in "ab")
loops = "".join(f'<connect body1="a{k}" body2="b{k}" anchor="0.1 0 0.1"/>' for k in range(PAIRS))
model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody><equality>{loops}</equality></mujoco>")
data = mujoco.MjData(model)
world = mujoco_warp.put_data(model, data)
on_device = mujoco_warp.put_model(model)
mujoco_warp.forward(on_device, world)
mujoco.mj_forward(model, data)
left = min(int(world.nefc.numpy()[0]), world.njmax)
print(f"rows: {data.nefc} in MuJoCo, {world.njmax} allocated; remaining part [-]: {left / data.nefc:.6g}")
