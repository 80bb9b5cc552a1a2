"""SAPIEN, which contains PhysX; its import warns of missing parts needed only for pictures."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sapien
    from sapien import physx

__all__ = ["physx", "sapien"]
