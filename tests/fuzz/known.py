"""Failures that are known and not mended yet: a pattern of "state: detail [operators of the minimised graph]" each, and
what it is. They count as known and do not fail the run. The list must be empty before the fuzzer's promise holds."""
import re

KNOWN_WRONG = [
    (r"error: vm-run exit 3.*matched, instruction .*expected .*, got", "dims that broadcast at run time alone"),
    (r"plan entry .*PlanBounds.*Loop", "a loop whose trips follow from a length"),
    (r"refused: .*(a symbolic dimension scaled|antialias of a symbolic dimension|of symbolic dimensions|"
     r"with strides over a symbolic dimension|with a symbolic dimension)",
     "resizing by a part, unpooling, and places of maxima by auto_pad SAME, of constant dims alone"),
    (r"refused: .*a scanned output whose shape changes from trip to trip", "scanned outputs of changing shapes"),
]


def known(text):
    """What the failure is, or None."""
    return next((what for pattern, what in KNOWN_WRONG if re.search(pattern, text)), None)
