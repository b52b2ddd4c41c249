"""The package as a whole: its frame, its version, its modules and what they import."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

import lpsched
from lpsched import errors

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(lpsched.__path__, prefix="lpsched.")
    if not module.name.endswith("__main__")
    and not module.name.startswith("lpsched.replay.")  # see tests/with_torch
)
SOURCES = sorted((ROOT / "lpsched").rglob("*.py"))


def test_the_version_stands_in_one_place() -> None:
    assert version("lpsched") == lpsched.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", lpsched.__version__)


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "lpsched" / "py.typed").is_file()
    assert "Typing :: Typed" in metadata("lpsched").get_all("Classifier", [])


def test_shipped_files_travel_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(wheel["force-include"]) == {"models", "instances"}
    assert all((ROOT / folder).is_dir() for folder in wheel["force-include"])


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_offers_exists(name: str) -> None:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public), f"{name} lacks {public}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_its_one_job_and_what_it_offers(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert (ast.get_docstring(tree) or "").split("\n")[0].endswith(".")
    names = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    defines = any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in tree.body)
    assert "__all__" in names or not defines


def test_every_error_of_the_package_is_one_family() -> None:
    found = [getattr(errors, name) for name in errors.__all__]
    raised = [c for c in found if isinstance(c, type) and issubclass(c, BaseException)]
    assert len(raised) > 5
    assert all(issubclass(c, errors.LpschedError) for c in raised)


def imported_by(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter loads for a statement."""
    code = f"import sys; {statement}; print(*{{m.split('.')[0] for m in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("lpsched", {"pydantic", "numpy"}),
        ("lpsched.core.io", {"numpy", "ortools", "pulp", "highspy", "matplotlib"}),
        ("lpsched.verify", {"numpy", "networkx", "ortools", "pulp", "highspy"}),
        ("lpsched.plot", {"matplotlib", "plotly", "ortools", "pulp", "typer"}),
    ],
)
def test_a_floor_loads_no_more_than_it_needs(module: str, absent: set[str]) -> None:
    assert not imported_by(f"import {module}") & absent


def test_the_scripts_of_the_repository_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("target", ["demo", "test", "lint", "wheel", "clean", "help"])
def test_every_target_of_the_makefile_is_named_in_its_help(target: str) -> None:
    run = subprocess.run(
        ["make", "--no-print-directory", "-C", str(ROOT), "help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"make {target} " in run.stdout


def test_the_changelog_names_this_version_or_what_comes_next() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]" in text or f"## [{lpsched.__version__}]" in text


@pytest.mark.parametrize("name", sorted({*lpsched.__all__} - {"__version__"}))
def test_every_public_name_is_explained(name: str) -> None:
    text = getattr(lpsched, name).__doc__ or ""
    assert text.strip().split("\n")[0].endswith((".", "::"))
    assert f"`{name}`" in (lpsched.__doc__ or ""), "help(lpsched) does not name it"


def test_the_example_in_help_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """AlexNet's least period on four devices is that of the README's reference."""
    example = (lpsched.__doc__ or "").split("::")[1].split("Read:")[0]
    code = textwrap.dedent(example).strip()
    assert len([line for line in code.splitlines() if line]) <= 10
    exec(compile(code, "help", "exec"), {})  # noqa: S102 - our own example
    assert capsys.readouterr().out == "optimal 518254272\n"
