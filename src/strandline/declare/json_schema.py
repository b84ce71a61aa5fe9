"""The JSON Schema of the project file, which editors use for completion.

`python -m strandline.declare.json_schema` writes it.
"""

import json
from pathlib import Path

from .project_file import make_json_schema
from .sections import SECTIONS

SCHEMA_FILE = Path(__file__).with_name("strandline.schema.json")


def spell_json_schema() -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "strandline.schema.json",
        **make_json_schema(SECTIONS),
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(spell_json_schema())
