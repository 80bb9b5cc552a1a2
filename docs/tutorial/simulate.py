"""Simulate tuned.xml with MuJoCo, and write the log run.csv."""

import mujoco
import numpy as np
import pandas as pd

model = mujoco.MjModel.from_xml_path("tuned.xml")
data = mujoco.MjData(model)
STATE = mujoco.mjtState.mjSTATE_INTEGRATION
state = np.zeros(mujoco.mj_stateSize(model, STATE))
columns = ["t", "qpos.0", "qpos.1", "qpos.2", "qvel.0", "qvel.1", "qvel.2", "crank.effort"]
rows = []
while data.time < 2:
    data.ctrl[0] = 0.3 * np.sin(np.pi * data.time) ** 2
    before = [data.time, *data.qpos, *data.qvel]
    mujoco.mj_getState(model, data, state, STATE)
    mujoco.mj_step(model, data)
    effort = data.actuator_force[0]
    rows.append([*before, effort])
with open("run.csv", "w") as log:
    log.write(f'# effort_time = "held:{model.opt.timestep}"\n')
    pd.DataFrame(rows, columns=columns).to_csv(log, index=False)
