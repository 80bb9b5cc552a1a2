"""MuJoCo 4.0: the acceleration of a joint equality lacks the curvature of its polynomial."""

import mujoco

MODEL = """<mujoco><option gravity="0 0 0"/>
<worldbody>
  <body><joint name="leader" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
  <body><joint name="follower" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
</worldbody>
<equality><joint joint1="follower" joint2="leader" polycoef="0 0 {half} 0 0" solimp="0.9999 0.9999 0.001"/></equality>
</mujoco>"""
HALF, Q, QD = 0.5, 0.3, 2.0  # follower = HALF leader²; position [rad] and velocity [rad/s] of the leader

model = mujoco.MjModel.from_xml_string(MODEL.format(half=HALF))
data = mujoco.MjData(model)
data.qpos[:] = Q, HALF * Q**2
data.qvel[:] = QD, 2 * HALF * Q * QD
mujoco.mj_forward(model, data)
curvature = 2 * HALF * QD**2  # p''(q) q̇²
missing = curvature + 2 * HALF * Q * data.qacc[0] - data.qacc[1]
print(f"acceleration of the follower [rad/s²]: {data.qacc[1]:.4f}, of its leader {data.qacc[0]:.4f}")
print(f"missing acceleration over p''(q) q̇² [-]: {missing / curvature:.4f}")
