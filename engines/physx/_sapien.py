"""SAPIEN, which brings PhysX; it warns at its import of what only its pictures need."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sapien
    from sapien import physx

__all__ = ["physx", "sapien"]
