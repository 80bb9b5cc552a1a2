"""Efforts that acted while a controller moved the robot by the actuation of its driven joints."""

from loopcheck.engines.as_is import ComputedTorqueAsIs
from loopcheck.engines.drake._equations import equations
from loopcheck.engines.drake._plant import guarded
from loopcheck.engines.drake.simulation import DrakeRobot

AS_IS = ComputedTorqueAsIs(
    name="drake/as_is",
    equations=equations,
    robot=DrakeRobot,
    guarded=guarded,
    settings={
        "loops": "AddBallConstraint, AddWeldConstraint and AddCouplerConstraint",
        "solver": "discrete plant with SAP, default settings",
        "actuators": "actuation input port, computed torque held for a step",
        "loads": "springs as force elements, external wrenches and gravity compensation as applied spatial forces",
    },
)
