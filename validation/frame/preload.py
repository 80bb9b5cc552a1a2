"""Modules of the workers of studies, imported once by the process that they are forked from."""

PRELOAD = (
    "loopcheck.validation.execution.workers",
    "loopcheck.validation.check.audit.audit",
    "loopcheck.validation.check.efforts.evaluate",
    "loopcheck.engines.mujoco.routes.forward",
    "loopcheck.engines.mujoco.routes.as_is",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.sparse.csgraph",
    "scipy.spatial.transform",
)
"""Names of modules, without their imports, so that a command with these names answers at once.

Parts of scipy are used by most engines; each worker would import them by itself."""
