"""What workers of studies need, imported once by the process that they are forked from."""

PRELOAD = (
    "validation.execution.workers",
    "validation.judge.audit",
    "validation.judge.evaluate",
    "engines.mujoco.routes.forward",
)
"""Names of modules; a name alone imports nothing, so that a command that says them answers at once."""
