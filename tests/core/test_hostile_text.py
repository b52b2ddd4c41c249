"""Text that reads well and yet cannot be meant: half characters, endless numbers."""

from __future__ import annotations

import pytest

from lpsched.core.io import parse_text, schedule_from_document
from lpsched.errors import FormatError


@pytest.mark.parametrize(
    ("escape", "source"),
    [("\\ud800", "a.json"), ("\\uDFFF", "a.yaml"), ("\\U0000d800", "a.yaml")],
)
def test_half_a_character_is_refused(escape: str, source: str) -> None:
    with pytest.raises(FormatError, match="surrogate"):
        parse_text(f'{{"name": ["{escape}"]}}', source=source)


def test_whole_characters_may_be_escaped() -> None:
    text = '{"name": "\\u00e9\\ud83d\\ude80"}'
    assert parse_text(text, source="file.json") == {"name": "é🚀"}


@pytest.mark.parametrize("text", ["1e999999999", "1/0", "0x1", "", "1/-2", "9" * 41])
def test_a_fraction_is_one_integer_over_another(text: str) -> None:
    document = {
        "schema": "lpsched/schedule/1",
        "graph": "g",
        "graph_digest": "sha256:" + "0" * 64,
        "period": 1,
        "ops": {},
        "result": {
            "method": "m",
            "status": "feasible",
            "objective": {"iteration_period": text},
        },
    }
    with pytest.raises(FormatError, match=r"iteration_period: .*fraction"):
        schedule_from_document(document)
