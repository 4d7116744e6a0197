"""The cases of TVM's and IREE's public tests, as tests of Ingot: tests/peers/README.md names Ingot's test for every
case of their files, or says why the case does not apply. Each named test runs here, and no other; one that is missing,
does not run or fails is an error.

usage: peer_cases.py BIN_DIR    exits 77 when all is well but for tests that were skipped, for want of Python's
packages"""
import collections, pathlib, re, subprocess, sys
import xml.etree.ElementTree as xml

BIN = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE.parent / "peers" / "README.md"
NOT_APPLICABLE = "not applicable: "

problems, skipped = [], []


def read_table():
    """Tests, as (program, name), with the cases that they stand for."""
    cases, tests, section, announced = collections.Counter(), collections.defaultdict(list), None, {}
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if head := re.fullmatch(r"## (.*) \((\d+) cases\)", line):
            section, announced[head[1]] = head[1], int(head[2])
        elif line.startswith("| ") and not line.startswith("| case |"):
            case, held_by = (cell.strip() for cell in line.strip("|").split(" | ", 1))
            cases[section] += 1
            names = re.findall(r"`([\w.]+): ([^`]+)`", held_by)
            if not held_by.startswith(NOT_APPLICABLE) and not names:
                problems.append(f"line {number}: {case} has neither a test nor a reason")
            for program, name in names:
                tests[program, name].append(f"{section}, {case}")
    for name, count in announced.items():
        if cases[name] != count:
            problems.append(f"{name}: {count} cases are announced, {cases[name]} rows are there")
    return cases, tests


def run_doctest(program, names):
    """The names of test cases and "case > subcase" that passed."""
    patterns = sorted({re.sub(r"[,\\*]", "?", name.split(" > ")[0]) for name in names})
    result = subprocess.run([BIN / program, "-r=xml", "-cs", "-tc=" + ",".join(patterns)], capture_output=True,
                            text=True)
    passed = set()
    for case in xml.fromstring(result.stdout).iter("TestCase"):
        outcome = case.find("OverallResultsAsserts")
        if outcome is not None and outcome.get("test_case_success") == "true":
            passed.add(case.get("name"))
            passed |= {f"{case.get('name')} > {subcase.get('name')}" for subcase in case.iter("SubCase")}
    return passed


def run_script(script, names):
    """Scripts of Python's unittest run the named tests alone; others run whole and print "ok   NAME"."""
    path = HERE / script
    if not path.exists():
        return set()
    is_unittest = "unittest.main" in path.read_text()
    options = [word for name in names for word in ("-k", name)] if is_unittest else []
    result = subprocess.run([sys.executable, path, BIN, *(["-v"] if is_unittest else []), *options],
                            capture_output=True, text=True)
    if result.returncode == 77:
        return None
    said = result.stdout + result.stderr
    return set(re.findall(r"^(\w+) \(.*\.\.\. ok$", said, re.M)) | set(re.findall(r"^ok +(.+)$", said, re.M))


cases, tests = read_table()
programs = collections.defaultdict(list)
for program, name in tests:
    programs[program].append(name)
num_passed = 0
for program, names in sorted(programs.items()):
    if program.endswith(".py"):
        passed = run_script(program, names)
    else:
        passed = run_doctest(program, names) if (BIN / program).exists() else set()
    if passed is None:
        skipped.append(program)
        continue
    for name in names:
        if name in passed:
            num_passed += 1
        else:
            problems.append(f"{program}: \"{name}\" did not run, or failed; it stands for "
                            f"{'; '.join(tests[program, name])}")
for section, count in cases.items():
    print(f"{count:4} cases of {section}")
print(f"{num_passed} tests of {len(tests)} ran and passed")
for program in skipped:
    print("SKIP:", program)
for problem in problems:
    print("FAIL", problem)
sys.exit(1 if problems else 77 if skipped else 0)
