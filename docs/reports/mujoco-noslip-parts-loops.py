"""MuJoCo 4.0: noslip solves dry friction again while the forces of the loops stay, which accelerates a loop apart."""

import mujoco

MODEL = """<mujoco><option gravity="0 0 0" timestep="{step}" noslip_iterations="{noslip}"/>
<worldbody>
  <body><joint name="driver" type="slide"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
  <body><joint name="follower" type="slide" frictionloss="1"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
</worldbody>
<equality>
  <joint joint1="follower" joint2="driver" solref="{time} 1" solimp="0.9999 0.9999 0.001"/>
</equality>
<actuator><motor joint="driver"/></actuator></mujoco>"""
FORCE = 0.5  # of the motor [N]: both bodies together stick to the friction of 1 N

for step in (2e-3, 1e-4):
    for noslip in (0, 10):
        model = mujoco.MjModel.from_xml_string(MODEL.format(step=step, noslip=noslip, time=2 * step))
        data = mujoco.MjData(model)
        data.ctrl[:] = FORCE
        mujoco.mj_forward(model, data)
        parted = (data.qacc[0] - data.qacc[1]) / FORCE  # [m/s²] over the force of the motor on 1 kg
        print(f"step {step:g} s, noslip_iterations {noslip}: relative acceleration of the joined bodies {parted:.4f}")
