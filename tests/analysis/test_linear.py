"""Linear programs by HiGHS, beside what else a process does with HiGHS."""

from __future__ import annotations

import pytest

from lpsched.analysis.linear import LinearProgram, Row, quiet_highs


def _least() -> float:
    """Minimise 2x + 3y with x + y >= 4 and x <= 3: x = 3, y = 1, so 9."""
    program = LinearProgram([2.0, 3.0])
    program.add([Row((0, 1), (1.0, 1.0), 4.0), Row((0,), (1.0,), 0.0, 3.0)])
    solution = program.minimise()
    assert solution is not None
    return solution.value


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_it_runs_whatever_number_of_threads_somebody_else_asked_highs_for(
    threads: int,
) -> None:
    """HiGHS keeps one pool a process, and refuses another size while it stands."""
    other = quiet_highs(threads=threads, parallel="choose")
    other.resetGlobalScheduler(True)
    other.addVar(0.0, 1.0)
    other.run()
    assert _least() == pytest.approx(9)


def test_an_infeasible_program_has_no_solution() -> None:
    program = LinearProgram([1.0])
    program.add([Row((0,), (1.0,), 2.0), Row((0,), (1.0,), 0.0, 1.0)])
    assert program.minimise() is None
