"""The notebooks as they are committed: a numbered course, executed, small, in order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells_of(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return cells


def test_the_course_is_numbered_without_gaps() -> None:
    assert [int(path.name[:2]) for path in NOTEBOOKS] == list(range(len(NOTEBOOKS)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_executed_and_small(path: Path) -> None:
    assert path.stat().st_size < 1_000_000
    cells = cells_of(path)
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# ")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    counts = [cell["execution_count"] for cell in code]
    assert counts == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    for output in outputs:
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_names_nothing_of_the_machine_that_ran_it(path: Path) -> None:
    assert not re.search(r"/(root|home|work|tmp)/", path.read_text("utf-8"))
