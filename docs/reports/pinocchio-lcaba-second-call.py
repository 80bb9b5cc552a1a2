"""Pinocchio 4.1.0: a weld to the world holds in the first call of lcaba; in the second call, the body falls."""

import numpy as np
import pinocchio as pin

model, here = pin.Model(), pin.SE3.Identity()
slide = model.addJoint(0, pin.JointModelPZ(), here, "slide")
model.appendBodyToJoint(slide, pin.Inertia(1.0, np.zeros(3), np.eye(3)), here)

welds, results = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
kind, axes = pin.ContactType.CONTACT_6D, pin.ReferenceFrame.LOCAL
welds.append(pin.RigidConstraintModel(kind, model, slide, here, 0, here, axes))
results.append(welds[0].createData())
data, zero = model.createData(), np.zeros(1)
pin.computeJointMinimalOrdering(model, data, welds)
for call in ("first", "second"):
    proximal = pin.ProximalSettings(1e-14, 1e-14, 1e-3, 1000)
    a = pin.lcaba(model, data, zero, zero, zero, welds, results, proximal)
    print(f"{call} call: acceleration of the body over gravity [-]: {-a[0] / 9.81:.6g}")
