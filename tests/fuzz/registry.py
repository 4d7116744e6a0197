"""The table of generators: functions that add nodes of certain operators to a graph. `generates` makes a row of it; the
modules generate_*.py are read by operators.py, which the fuzzer and its coverage check ask."""

GENERATORS = []  # (function, operators that it makes, weight)


def generates(*operators, weight=1):
    """A row: the function makes nodes of these operators, and is chosen as often as its weight says."""
    def add(function):
        GENERATORS.append((function, operators, weight))
        return function
    return add
