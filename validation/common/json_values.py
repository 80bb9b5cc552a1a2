"""Values as JSON has them."""

import math
from collections.abc import Mapping
from typing import Any


def finite(value: Any) -> Any:
    """The value with null for numbers that JSON does not have, at any depth."""
    if isinstance(value, Mapping):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
