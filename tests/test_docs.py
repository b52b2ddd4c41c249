"""The documentation: what is generated is current, links lead somewhere, code runs."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
GENERATED: dict[str, Callable[[], str]] = runpy.run_path(str(DOCS / "write.py"))[
    "FILES"
]


@pytest.mark.parametrize("name", GENERATED)
def test_what_follows_from_the_code_is_current(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == GENERATED[name](), "run: make docs"


def test_every_key_of_every_document_has_a_meaning() -> None:
    """But for the keys of single layer types, which their first lines explain."""
    text = (DOCS / "formats.md").read_text("utf-8")
    for section in re.split(r"\n##+ ", text)[1:]:
        title = section.split("\n", 1)[0]
        if "what [every layer]" in section or title.endswith(("Product", "Bound")):
            continue
        for key, meaning in re.findall(
            r"^\| `(\w+)` \|.*\| ([^|]*) \|$", section, re.MULTILINE
        ):
            assert meaning.strip() or key == "schema", f"{title}: {key}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        if anchor:
            assert f'id="{anchor}"' in file.read_text("utf-8"), target


def test_formulas_are_left_in_no_other_markup() -> None:
    text = (DOCS / "formulations.md").read_text("utf-8")
    assert ":math:" not in text
    assert ".. math" not in text
    assert text.count("```") % 2 == 0
    assert text.count("```math") > 30


def test_the_code_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (DOCS / "extending.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "extending.md", "exec"), {})  # noqa: S102 - our own guide
    assert "'period': 715440" in capsys.readouterr().out
