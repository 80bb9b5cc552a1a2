"""MuJoCo 4.0: the acceleration of a tendon equality lacks the turning of the straight parts of the tendon."""

import mujoco

MODEL = """<mujoco><option gravity="0 0 0"/>
<worldbody>
  <site name="post"/>
  <body pos="{radius} 0 0">
    <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><site name="ball"/>
  </body>
</worldbody>
<tendon><spatial name="rope"><site site="post"/><site site="ball"/></spatial></tendon>
<equality><tendon tendon1="rope" solimp="0.9999 0.9999 0.001"/></equality>
</mujoco>"""
RADIUS, SPEED = 0.5, 2.0  # a ball on a rope moves in a circle [m, m/s]

model = mujoco.MjModel.from_xml_string(MODEL.format(radius=RADIUS))
data = mujoco.MjData(model)
data.qvel[1] = SPEED
mujoco.mj_forward(model, data)
centripetal = SPEED**2 / RADIUS
missing = centripetal + data.qacc[0]
print(f"acceleration towards the post [m/s²]: {-data.qacc[0]:.4f}, must be {centripetal:.4f}")
print(f"missing acceleration over v² / r [-]: {missing / centripetal:.4f}")
