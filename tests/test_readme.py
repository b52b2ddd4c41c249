"""The README's Python runs, its files are read and its commands do what they say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from lpsched.cli import main
from lpsched.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def _commands() -> list[str]:
    """Commands on lines of their own."""
    return re.findall(r"^    (lpsched .*)$", README, re.MULTILINE)


def test_the_python_example_runs() -> None:
    (example,) = _blocks("python")
    assert len(example.splitlines()) <= 12
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - our own README


def test_every_command_of_the_readme_runs_and_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The periods of the comparison shown are those that the program prints."""
    monkeypatch.chdir(tmp_path)
    names = ("mine.yaml", "measured.yaml", "instance.yaml")
    for name, text in zip(names, _blocks("yaml"), strict=True):
        Path(name).write_text(text)
    commands = _commands()
    assert len(commands) >= 5
    printed = {}
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
        printed[command] = capsys.readouterr().out
    (shown,) = _blocks("text")
    periods = re.findall(r"[\d,]{10,}", shown)
    assert len(periods) == 8
    (compared,) = [command for command in commands if "gantt.png" in command]
    assert all(period in printed[compared] for period in periods)


def test_the_table_names_every_verb() -> None:
    named = set(re.findall(r"^\| `lpsched (\S+)", README, re.MULTILINE))
    assert named == set(typer.main.get_group(app).commands)


def test_pictures_are_drawn_by_a_command_of_the_repository() -> None:
    pictures = re.findall(r"!\[[^]]+\]\((docs/[^)]+)\)", README)
    assert len(pictures) == 2
    recipe = (ROOT / "Makefile").read_text().split("\nfigures:")[1].split("\n\n")[0]
    for picture in pictures:
        assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
        assert f"--plot {picture}" in recipe


def test_the_heuristics_of_the_table_are_those_of_another_program() -> None:
    """In M MAC; LayerPipe is the better of intra and inter."""
    data = json.loads((ROOT / "tests" / "data" / "layerpipe_macs.json").read_text())
    row = {entry["devices"]: entry for entry in data["networks"]["vgg16"]}
    pattern = r"^\| (devices|PipeDream|LayerPipe|optimum) \| (.*) \|$"
    shown = {
        name: [int(cell.replace(",", "")) for cell in cells.split("|")]
        for name, cells in re.findall(pattern, README, re.MULTILINE)
    }
    assert shown["devices"] == list(range(2, 10))
    for p, pipedream, layerpipe, best in zip(*shown.values(), strict=True):
        assert pipedream == round(row[p]["pipedream"] / 10**6)
        ours = min(row[p]["layerpipe-intra"], row[p]["layerpipe-inter"])
        assert layerpipe == round(ours / 10**6)
        assert round(row[p]["bound"] / 10**6) <= best <= layerpipe
