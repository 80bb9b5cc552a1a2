"""The first fault of a table written by a user, as a single line."""

from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

LONGEST = 60
"""Characters of a value that are shown [-]."""


def reason_of(error: ValidationError, schema: type[BaseModel]) -> str:
    """Place of the first fault, the requirement there and the value found.

    Args:
        error: Error raised by reading the table.
        schema: The form of the table.
    """
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {_fault(first, schema)}" if place else _fault(first, schema)


def _fault(first: ErrorDetails, schema: type[BaseModel]) -> str:
    kind, loc = first["type"], first["loc"]
    if kind == "missing":
        return "required key is missing"
    if kind == "extra_forbidden":
        known = list(schema.model_fields) if len(loc) == 1 else []
        close = get_close_matches(str(loc[-1]), known, n=1)
        return f"unknown key. Did you mean '{close[0]}'?" if close else "unknown key"
    if kind == "value_error":
        return str(first["ctx"]["error"])  # of a check of ours, which says what came
    value = repr(first["input"])
    return f"{first['msg']}, got {value if len(value) <= LONGEST else f'{value[:LONGEST]}...'}"
