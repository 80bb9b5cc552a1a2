"""MuJoCo 4.0.0: under discrete more than actuatorfrcrange acts."""

import mujoco

SLIDE = """
<mujoco><option integrator="discrete" timestep=".005" gravity="0 0 0"/><worldbody>
  <body><joint name="x" type="slide" actuatorfrcrange="-10 10"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator><position joint="x" kp="2000" kv="60"/></actuator></mujoco>"""

model = mujoco.MjModel.from_xml_string(SLIDE)
data = mujoco.MjData(model)
data.ctrl[:] = 0.1
acted, reported = [], []
for _ in range(100):
    before = float(data.qvel[0])
    mujoco.mj_step(model, data)
    acted.append(abs(data.qvel[0] - before) / model.opt.timestep)
    reported.append(abs(float(data.qfrc_actuator[0])))
print(f"largest force: reported {max(reported):g} N, acted over actuatorfrcrange: {max(acted) / 10:.6g}")
