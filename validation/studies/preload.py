"""Modules of the workers of studies, imported once by the process that they are forked from."""

PRELOAD = (
    "loopcheck.validation.execution.workers",
    "loopcheck.validation.comparison.audit",
    "loopcheck.validation.comparison.evaluate",
    "loopcheck.engines.mujoco.routes.forward",
)
"""Names of modules, without their imports, so that a command with these names answers at once."""
