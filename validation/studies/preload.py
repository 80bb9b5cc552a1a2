"""What workers of studies need, imported once by the process that they are forked from."""

PRELOAD = (
    "validation.execution.workers",
    "validation.judge.evaluate",
    "engines.mujoco.routes.forward",
    "validation.studies.run.report",
)
"""Names of modules; a name alone imports nothing, so that a command that says them answers at once."""
