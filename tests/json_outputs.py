"""JSON outputs of commands, held against the stored schemas by an independent validator."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from loopcheck.validation.frame.study import Conclusion, Study, StudyResult, exit_status, json_object

SCHEMAS = Path(__file__).parents[1] / "docs/schemas"


def validator(name: str) -> Draft202012Validator:
    """Validator of an object by the name of its schema, as `loopcheck.gate/1`."""
    path = SCHEMAS / f"{name.removeprefix('loopcheck.').rpartition('/')[0]}.schema.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def valid_output(text: str) -> dict[str, Any]:
    """The object in an output, which must be JSON without NaN and satisfy its schema."""

    def refuse(constant: str) -> None:
        raise ValueError(f"no JSON: {constant}")

    output: dict[str, Any] = json.loads(text, parse_constant=refuse)
    validator(output["schema"]).validate(output)
    return output


def valid_result(study: Study, result: StudyResult, conclusion: Conclusion) -> dict[str, Any]:
    """The object of a computed study, as the command prints it."""
    status = exit_status(conclusion.verdicts, result.record)
    return valid_output(json.dumps({"exit_status": status, **json_object(study, result, conclusion)}))
