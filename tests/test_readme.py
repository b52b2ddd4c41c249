"""The README's Python runs, its files are read and its commands do what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lpsched.cli import main

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def _commands() -> list[str]:
    """Commands on lines of their own, those of the shipped network made quick."""
    return re.findall(r"^    (lpsched .*)$", README, re.MULTILINE)


def test_the_python_example_runs() -> None:
    (example,) = _blocks("python")
    assert len(example.splitlines()) <= 12
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - our own README


def test_every_command_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("mine.yaml", "measured.yaml", "instance.yaml")
    for name, text in zip(names, _blocks("yaml"), strict=True):
        Path(name).write_text(text)
    commands = _commands()
    assert len(commands) >= 4
    for command in commands:
        argv = shlex.split(command)[1:]
        assert main(argv) == 0, command


def test_the_comparison_shown_is_what_compare_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Periods of the README's table, from the program itself."""
    (shown,) = _blocks("text")
    assert main(["compare", "vgg16", "--devices", "8"]) == 0
    printed = capsys.readouterr().out
    periods = re.findall(r"[\d,]{10,}", shown)
    assert len(periods) == 8
    for period in periods:
        assert period in printed
