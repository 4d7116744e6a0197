"""Failures that are known and not mended yet: a pattern of "state: detail [operators of the minimised graph]" each, and
what it is. They count as known and do not fail the run. The list must be empty before the fuzzer's promise holds."""
import re

KNOWN_WRONG = [
    (r"is bound by no argument", "dims of 1 are lost from a kernel's loops"),
    (r"crash: vm-compile exit -11.* \[(Compress|Gather|Concat)", "tensors without elements"),
    (r"has no known rank or data type", "a result whose broadcast dims are only known at run time"),
    (r"error: vm-run exit 3.*matched, instruction .*expected .*, got", "dims that broadcast at run time alone"),
    (r"plan entry .*PlanBounds.*Loop", "a loop whose trips follow from a length"),
    (r"refused: .*(a symbolic dimension|dimensions that are symbols|over a symbolic dimension)",
     "forms of operators that ask for constant dims"),
]


def known(text):
    """What the failure is, or None."""
    return next((what for pattern, what in KNOWN_WRONG if re.search(pattern, text)), None)
