"""The second exact back end: periodic event scheduling as an integer program.

Written with PuLP and solved by HiGHS, or by CBC on request. Same rules, by the same
names, as the verifier and the other back end; no big-M but for the ends of lives.
"""

from lpsched.formulations.ilp.build import Model, build
from lpsched.formulations.ilp.solve import model_text, solve_at_period, write_model

__all__ = ["Model", "build", "model_text", "solve_at_period", "write_model"]
