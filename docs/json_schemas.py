"""JSON Schemas of the outputs of commands, in `docs/schemas`: `python -m docs.json_schemas`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopcheck.validation.check import baseline as check_baseline
from loopcheck.validation.check.study import Check
from loopcheck.validation.common.verdicts import WORST_FIRST
from loopcheck.validation.execution import baseline
from loopcheck.validation.execution.tables import Column, TableSpec
from loopcheck.validation.frame.study import Study, json_tables, schema_name
from loopcheck.validation.gate import baseline as gate_baseline
from loopcheck.validation.gate import formats
from loopcheck.validation.gate.findings import RULES, SEVERITIES
from loopcheck.validation.judge.study import Judge
from loopcheck.validation.same import same
from loopcheck.validation.same.fields import FIELDS
from loopcheck.validation.serial.audit import Audit
from loopcheck.validation.serial.study import Serial
from loopcheck.validation.tune.study import Tune
from loopcheck.validation.tune.verify import VerifiedCertificate
from loopcheck.validation.versions import result as versions

FOLDER = Path(__file__).with_name("schemas")
STUDIES: tuple[type[Study], ...] = (Check, Judge, Tune, VerifiedCertificate, Serial, Audit)
TYPES: Mapping[type, str] = {str: "string", float: "number", int: "integer", bool: "boolean"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
RECORD = ("study", "loopcheck", "command", "start", "duration_s", "not_run", "internal_errors", "versions", "units")
"""Entries of the record that all studies have; others depend on the study."""


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas by the names of their files."""
    return {
        **{f"{study.name}.schema.json": study_schema(study) for study in STUDIES},
        "gate.schema.json": gate_schema(),
        "same.schema.json": same_schema(),
        "versions.schema.json": versions_schema(),
        "baseline.schema.json": baseline_schema(),
    }


def study_schema(study: type[Study]) -> dict[str, Any]:
    """Schema of the object that a study prints with `--format json`."""
    rows = {name: {"type": "array", "items": _row(study.tables[name])} for name in json_tables(study)}
    files = {name: {"const": f"{name}.csv"} for name in study.tables}
    entries = {
        "schema": {"const": schema_name(study.name)},
        "exit_status": _status(0, 1, 3, 70),
        "study": {"const": study.name},
        "verdicts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
        "folder": {**TEXT, "description": "absolute path of the output folder"},
        "tables": {**_object(files), "description": "files in the output folder"},
        "rows": {**_object(rows), "description": "tables with verdicts or answers"},
        "record": {"type": "object", "required": list(RECORD), "description": "content of run.json"},
    }
    optional = {"baseline": _baseline_result()} if study is Check else {}
    return _titled(schema_name(study.name), _object(entries, optional))


def gate_schema() -> dict[str, Any]:
    """Schema of the object that the gate prints with `--format json`."""
    finding = {
        "code": {"enum": list(RULES)},
        "severity": {"enum": list(SEVERITIES.values())},
        "file": TEXT,
        "line": {"type": "integer", "minimum": 1},
        **dict.fromkeys(("element", "message", "remedy", "page"), TEXT),
    }
    target = {
        "target": TEXT,
        "file": TEXT,
        "seconds": {"type": "number", "minimum": 0},
        "known": {**COUNT, "description": "further findings that a baseline excuses"},
        "loops": {"type": ["integer", "null"], "minimum": 0, "description": "closures and couplings; 0: a tree"},
        "findings": _rows(finding),
    }
    entries = {"schema": {"const": formats.SCHEMA}, "exit_status": _status(0, 1), "targets": _rows(target)}
    return _titled(formats.SCHEMA, _object(entries))


def same_schema() -> dict[str, Any]:
    """Schema of the object that `loopcheck same --format json` prints."""
    numbers = {"type": "array", "items": {"type": ["number", "null"]}}
    size = {"type": ["number", "null"], "minimum": 0}
    difference = {
        **dict.fromkeys(("element", "name"), TEXT),
        "field": {"enum": list(FIELDS)},
        "unit": TEXT,
        **{name: {"oneOf": [numbers, TEXT]} for name in ("a", "b")},
        "difference": size,
        "tolerance": size,
    }
    entries = {
        "schema": {"const": same.SCHEMA},
        "exit_status": _status(*same.VERDICTS),
        "verdict": {"enum": list(same.VERDICTS.values())},
        **dict.fromkeys(("a", "b"), TEXT),
        "joints": {**COUNT, "description": "compared joints"},
        "dynamics": TEXT,
        **{name: {"type": "array", "items": TEXT} for name in ("notes", "only_in_a", "only_in_b")},
        "differences": _rows(difference),
        "forces": _rows({"joint": TEXT, "unit": TEXT, "error": size, "scale": size}),
    }
    return _titled(same.SCHEMA, _object(entries))


def versions_schema() -> dict[str, Any]:
    """Schema of the object that `loopcheck versions --format json` prints."""
    size = {"type": ["number", "null"], "minimum": 0, "description": "over the largest value; null: infinite"}
    texts = {"type": "array", "items": TEXT}
    change = {"term": TEXT, "size": size, "elements": texts}
    comparison = {
        **dict.fromkeys(("terms", "finer"), _rows(change)),
        "fields": texts,
        "settled": size,
        "tight": size,
    }
    release = {
        **dict.fromkeys(("release", "before", "again", "reason", "changelog"), TEXT),
        "verdict": {"enum": list(versions.VERDICTS_OF_RELEASES)},
        "comparison": _object(comparison),
    }
    verdict = {"enum": list(versions.VERDICTS.values())}
    model = {"target": TEXT, "sha256": TEXT, "verdict": verdict, "notes": texts, "releases": _rows(release)}
    entries = {
        "schema": {"const": versions.SCHEMA},
        "exit_status": _status(*versions.VERDICTS),
        "verdict": verdict,
        "engine": TEXT,
        "models": _rows(model),
    }
    return _titled(versions.SCHEMA, _object(entries))


def baseline_schema() -> dict[str, Any]:
    """Schema of the files that `--write-baseline` and `versions --pin` write."""
    head = {"schema": {"const": baseline.SCHEMA}, "loopcheck": TEXT}
    texts = {"type": "object", "additionalProperties": TEXT}
    columns = {
        name: {**TEXT, **({"enum": list(WORST_FIRST)} if name == "verdict" else {})}
        if str in kinds
        else {"type": ["number", "null"]}
        for name, kinds in check_baseline.COLUMNS.items()
    }
    of_gate = {name: TEXT if str in kinds else COUNT for name, kinds in gate_baseline.COLUMNS.items()}
    check = {**head, "command": {"const": "check"}, "models": texts, "rows": _rows(columns)}
    rows = _rows(of_gate)
    rows["items"]["properties"][gate_baseline.EXTENT] = {
        "type": "number",
        "description": "size of the finding in the unit of its message; absent for a finding without one",
    }
    gate = {**head, "command": {"const": "gate"}, "rows": rows}
    pin = {
        **dict.fromkeys(("file", "sha256", "engine", "release"), TEXT),
        "largest": {"type": "object", "additionalProperties": {"type": ["number", "null"], "minimum": 0}},
        "dump": {"type": "object", "description": "states and terms; base64 of compressed little-endian float64"},
    }
    of_versions = {**head, "command": {"const": "versions"}, "rows": _rows(pin)}
    return _titled(baseline.SCHEMA, {"oneOf": [_object(check), _object(gate), _object(of_versions)]})


def _baseline_result() -> dict[str, Any]:
    worse = dict.fromkeys((*check_baseline.KEY, "verdict", "reason"), TEXT)
    changed = {"type": "array", "items": TEXT}
    counts = {"better": COUNT, "unchanged": COUNT}
    return _object({"file": TEXT, "worse": _rows(worse), **counts, "changed": changed})


def _row(spec: TableSpec) -> dict[str, Any]:
    return _object({name: _cell(column) for name, column in spec.columns.items()})


def _cell(column: Column) -> dict[str, Any]:
    kind = TYPES[column.kind]
    known = [*column.known, *([None] if column.nullable else [])]
    return {
        "type": [kind, "null"] if column.nullable else kind,
        **({"enum": known} if column.known else {}),
        **({"description": f"[{column.unit}]"} if column.unit else {}),
    }


def _object(entries: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    every = {**entries, **(optional or {})}
    return {"type": "object", "properties": every, "required": list(entries), "additionalProperties": False}


def _rows(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _object(columns)}


def _status(*statuses: int) -> dict[str, Any]:
    return {"enum": list(statuses), "description": "exit status of the command; bad input (2) prints no object"}


def _titled(title: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"$schema": DIALECT, "title": title, **schema}


if __name__ == "__main__":
    for name, schema in schemas().items():
        (FOLDER / name).write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
