"""The whole comparison as one page of HTML that needs nothing from elsewhere."""

from lpsched.report.case import Case
from lpsched.report.page import check_report, render

__all__ = ["Case", "check_report", "render"]
