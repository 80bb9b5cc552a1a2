"""MuJoCo as its user runs it: the file as it is, its own actuators and options, `mj_step` and nothing else."""

import mujoco

from engines.as_is import finite, history
from engines.computed_torque import bandwidth
from engines.mujoco._actuators import actuators
from engines.mujoco._as_is import compiled, plan, simulate, timeconst
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class MujocoAsIs(Source):
    """Efforts that acted while a controller moved the robot through the actuators of its file."""

    name = "mujoco/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        model = compiled(case.mechanism)
        softest = timeconst(model)
        width = bandwidth(model.opt.timestep, softest)
        servo = actuators(model).servo
        driving = plan(case.mechanism, motion)
        with finite(self.name):
            runs = [simulate(driving, model, width, start=sample) for sample in (0, len(motion.t) // 2)]
            return history(
                self.name,
                case,
                motion,
                (runs[0], runs[1]),
                timeconst=softest,
                settings={
                    "integrator": mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_"),
                    "solver and loops": "those of the file (solref, solimp, iterations, tolerance)",
                    "contacts, limits, dry friction": "as in the file",
                    "actuators": _in_words(servo.sum(), (~servo).sum()),
                    "effort": "what acted over each step, by what the integrator does with a force",
                },
            )


def _in_words(servos: int, motors: int) -> str:
    by_servo = f"{servos} servos of the file, sent to where the motion wants them"
    by_motor = f"{motors} motors of the file, computed torque held for a step"
    return "; ".join(text for text, number in ((by_servo, servos), (by_motor, motors)) if number)
