"""The independent verifier: one function per rule, core and standard library only."""

from lpsched.verify.agreement import check_agreement
from lpsched.verify.certificate import CertificateVerdict, Verdict, check_proof
from lpsched.verify.claims import check_claims, proof_verdicts
from lpsched.verify.measures import measure
from lpsched.verify.memory import check_memory
from lpsched.verify.rules import (
    check_colocate,
    check_coverage,
    check_delay,
    check_exclusive,
    check_flush,
    check_precedence,
)
from lpsched.verify.verifier import RULES, verify

__all__ = [
    "RULES",
    "CertificateVerdict",
    "Verdict",
    "check_agreement",
    "check_claims",
    "check_colocate",
    "check_coverage",
    "check_delay",
    "check_exclusive",
    "check_flush",
    "check_memory",
    "check_precedence",
    "check_proof",
    "measure",
    "proof_verdicts",
    "verify",
]
