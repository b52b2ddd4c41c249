"""Pictures of graphs by graphviz, where its program `dot` is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

from lpsched.core.graph import Graph, OpId
from lpsched.errors import UnsupportedError
from lpsched.export.dot import dot_text
from lpsched.plot.colours import KINDS

__all__ = ["has_graphviz", "render_by_graphviz"]

#: Seconds after which a layout is given up.
LONGEST_RUN = 120


def has_graphviz() -> bool:
    """Tell whether `dot` can be run."""
    return shutil.which("dot") is not None


def render_by_graphviz(
    graph: Graph, suffix: str, *, laps: Mapping[OpId, int] | None = None
) -> bytes:
    """Return a picture as the bytes of a file of the kind `suffix` (``.svg``).

    Raises
    ------
    UnsupportedError
        If `dot` is not installed, fails, or takes too long.
    """
    program = shutil.which("dot")
    if program is None:
        raise UnsupportedError("graphviz's program dot is not installed")
    colours = {kind: style.colour for kind, style in KINDS.items()}
    text = dot_text(graph, laps=laps, colours=colours)
    try:
        done = subprocess.run(  # noqa: S603 - a program of this machine, text by pipe
            [program, f"-T{suffix.removeprefix('.')}"],
            input=text.encode("utf-8"),
            capture_output=True,
            check=True,
            timeout=LONGEST_RUN,
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()
        raise UnsupportedError(f"graphviz failed: {said}") from error
    except subprocess.TimeoutExpired as error:
        text = f"graphviz took more than {LONGEST_RUN} s for {len(graph.ops)} ops"
        raise UnsupportedError(text) from error
    return done.stdout
