"""Text that reads well and yet cannot be meant: half characters, endless numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpsched.core.io import (
    graph_from_document,
    parse_text,
    read_bytes,
    read_document,
    read_text,
    schedule_from_document,
)
from lpsched.errors import Fault, FormatError, InstanceError


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


def bomb(levels: int, entry: str) -> str:
    """Each level names the one below ten times: 10 ** levels values in the last."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [
        f"a{i}: &a{i} {entry.format(', '.join([f'*a{i - 1}'] * 10))}"
        for i in range(1, levels + 1)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("entry", ["[{}]", "{{<<: [{}]}}"])
def test_aliases_of_aliases_are_refused_before_they_are_built(entry: str) -> None:
    with pytest.raises(FormatError, match=r"more than 5,000,000 values \(aliases"):
        parse_text(bomb(10, entry), source="bomb.yaml")


def test_a_few_aliases_are_read() -> None:
    data = parse_text(bomb(2, "[{}]"), source="file.yaml")
    assert data["a2"] == [[{"x": 1}] * 10] * 10


def test_a_huge_value_in_the_wrong_place_is_shown_in_part() -> None:
    data = parse_text(bomb(5, "[{}]"), source="file.yaml")
    document = {"schema": "lpsched/graph/1", "name": data["a5"], "devices": "x" * 999}
    with pytest.raises(FormatError) as caught:
        graph_from_document(document | {"ops": []})
    name, devices = (f for f in caught.value.faults if f.path in ("name", "devices"))
    assert name.message == (
        "expected a string, got " + ("[" * 5 + '{"x": 1}, ' * 6)[:57] + "..."
    )
    assert devices.message.endswith('got "' + "x" * 56 + "...")


def test_a_file_without_end_is_refused() -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("there is no /dev/zero here")
    for read in (read_text, read_bytes, read_document):
        with pytest.raises(FormatError, match="/dev/zero: larger than 256 MiB"):
            read("/dev/zero")


def test_lines_may_end_as_on_any_system(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes("é\r\nb\rc\n".encode())
    assert read_text(path) == "é\nb\nc\n"
    assert read_bytes(path) == "é\r\nb\rc\n".encode()


def test_a_hundred_faults_are_shown_and_all_are_kept() -> None:
    faults = [Fault(f"ops[{i}]", "bad") for i in range(1234)]
    error = FormatError(faults, source="file.json")
    lines = str(error).splitlines()
    assert lines[99:] == ["file.json: ops[99]: bad", "file.json: ... and 1,134 more"]
    assert len(error.faults) == 1234
    assert len(str(InstanceError(faults[:100])).splitlines()) == 100


def test_a_key_that_stands_twice_is_named_with_its_line() -> None:
    """Keys in mappings of their own, in text and as values do not count."""
    text = """{"a": {"b\\"}": [{"c": 1}, {"c": "c"}]},
 "x": "{\\"x\\": 1", "y": {"x": 2},
 "\\u0078" : 3}"""
    with pytest.raises(FormatError, match="line 3: not JSON: the key 'x' stands twice"):
        parse_text(text, source="file.json")
