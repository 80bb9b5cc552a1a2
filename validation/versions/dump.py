"""Program that runs in the environment of a release: terms of model files, a line of JSON each.

Runs with numpy and an engine alone, so that nothing of loopcheck may be imported. Its argument is a file with the
request: `part`, the path of the engine's `release_terms.py`; `files`, states or null by path; `count`, the number of
states; `seed`; `out`, the file for the lines.
"""

import base64
import importlib.util
import json
import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

REFUSAL = 300
"""Longest stored message of an engine [characters]."""


def packed(values: Any) -> str:
    """Numbers as text: float64 in little-endian order, compressed."""
    return base64.b64encode(zlib.compress(np.asarray(values, "<f8").tobytes(), 6)).decode()


def unpacked(text: str) -> Any:
    """The numbers of `packed`, shape (n,)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8")


def dump(part: Any, path: str, states: Any, count: int, seed: int) -> Mapping[str, Any]:
    """Terms, fields and settled state of a model file, or the message with which the engine refuses it."""
    try:
        model = part.read(path)
    except Exception as error:  # each engine has its own
        return {"refusal": " ".join(str(error).split())[:REFUSAL]}
    if states is None:
        made = part.states(model, count, np.random.default_rng(seed))
        states = [[packed(each) for each in state] for state in made]
    unpacked_states = [[unpacked(each) for each in state] for state in states]
    sizes = [len(each) for each in unpacked_states[0]]
    if not any(sizes):
        return {"failure": "a model must have at least one degree of freedom, got none: nothing would be compared"}
    found: dict[str, Any] = {"sizes": list(part.sizes(model)), "states": states, "terms": {}, "settled": ""}
    found["fields"] = {name: packed(value) for name, value in part.fields(model)}
    if found["sizes"] != sizes:
        return found
    found["terms"] = _terms(part, model, unpacked_states)
    if hasattr(part, "settled"):
        found["settled"] = packed(part.settled(model))
    return found


def _terms(part: Any, model: Any, states: list[list[Any]]) -> dict[str, Any]:
    """Values and names of each term by state."""
    found: dict[str, Any] = {}
    for state in states:
        for name, (values, names) in part.terms(model, state).items():
            term = found.setdefault(name, {"values": [], "names": []})
            term["values"].append(packed(values))
            term["names"].append(list(names))
    for term in found.values():  # names of joints do not depend on the state, names of contacts do
        if all(names == term["names"][0] for names in term["names"]):
            term["names"] = term["names"][:1]
    return found


def main() -> None:
    """Write a line for each file as soon as it is there: an engine may crash at the next one."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spec: Any = importlib.util.spec_from_file_location("release_terms", request["part"])
    part: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(part)
    with Path(request["out"]).open("w", encoding="utf-8") as out:
        for path, states in request["files"].items():
            try:
                found = dump(part, path, states, request["count"], request["seed"])
            except Exception as error:
                found = {"failure": f"{type(error).__name__}: {' '.join(str(error).split())[:REFUSAL]}"}
            line = {"file": path, **found}
            out.write(json.dumps(line) + "\n")
            out.flush()
    os._exit(0)  # engines may crash when Python frees their objects


if __name__ == "__main__":
    main()
