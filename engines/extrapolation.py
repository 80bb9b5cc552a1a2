"""Richardson's extrapolation: what efforts at several sizes of a step, or of a softness, say of size zero."""

from collections.abc import Sequence

import numpy as np

from robots.arrays import Array


def value_at_zero(sizes: Sequence[float], efforts: Sequence[Array]) -> Array:
    """Value at size zero of the polynomial through the efforts [N or N m], shape (nt, na)."""
    h = np.array(sizes)
    weights = [np.prod(others / (others - own)) for own, others in ((h[i], np.delete(h, i)) for i in range(len(h)))]
    return np.tensordot(weights, np.array(efforts), axes=1)
