"""The lane of scripts/record_gpu_launches on the stand-in driver in place of a GPU: launches that tests record are
repeated with the same bits, the stand-in is held to them, and what differs is found on both sides. ptxas takes what the
stand-in takes.
usage: gpu_launches.py BUILD"""
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.machinery import SourceFileLoader

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = "-tc=*every form*,*approximate functions*"


OTHERS = "-tc=ptx memory*,ptx warps*,ptx blocks*,ptx matrices*,ptx of *"  # whose forms no table lists


def run_tests(folder, cases=CASES, **variables):
    return subprocess.run([os.path.join(BUILD, "bin/standin_tests"), cases], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, **variables})


def script(folder, *arguments):
    return subprocess.run([sys.executable, os.path.join(ROOT, "scripts/record_gpu_launches"), *arguments, "tests.rec"],
                          capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "standin"), "INGOT_STANDIN_SM": "90",
                               "INGOT_STANDIN_DRIVER": "13000"})


def main():
    with tempfile.TemporaryDirectory() as folder:
        def path(name):
            return os.path.join(folder, name)

        def read(name):
            with open(path(name), encoding="utf-8") as file:
                return file.read()

        def write(name, text):
            with open(path(name), "w", encoding="utf-8") as file:
                file.write(text)

        recorded = run_tests(folder, OTHERS, INGOT_STANDIN_RECORD=path("tests.rec"))
        assert recorded.returncode == 0, recorded.stdout
        checked = script(folder, "--ptxas")
        assert checked.returncode == 0, checked.stdout
        print(checked.stdout.strip())
        os.remove(path("tests.rec"))

        recorded = run_tests(folder, INGOT_STANDIN_RECORD=path("tests.rec"))
        assert recorded.returncode == 0, recorded.stdout
        played = script(folder, "--results", "results.json", "--fixture", "rows.txt")
        assert played.returncode == 0, played.stdout + played.stderr
        results = json.loads(read("results.json"))
        count = len(results["launches"])
        assert count > 50, count
        assert f"{count} launches, {count} with the same bits, 0 within a bound, 0 not explained" in played.stdout

        held = run_tests(folder, INGOT_STANDIN_GOLDEN=path("rows.txt"))
        assert held.returncode == 0, held.stdout
        assert " launches are as on a GPU, 0 are not recorded" in held.stdout, held.stdout
        none = run_tests(folder, INGOT_STANDIN_GOLDEN=path("nowhere.txt"))
        assert none.returncode == 0 and "SKIP: no launches of a GPU are recorded" in none.stdout, none.stdout

        # Another hash: the launch is refused.
        rows = read("rows.txt").splitlines()
        key, digest = rows[-1].split()
        write("wrong.txt", "\n".join(rows[:-1] + [f"{key} {int(digest, 16) ^ 1:08x}"]) + "\n")
        wrong = run_tests(folder, INGOT_STANDIN_GOLDEN=path("wrong.txt"))
        assert wrong.returncode != 0 and "a GPU leaves something else than this" in wrong.stdout, wrong.stdout

        sys.dont_write_bytecode = True
        loader = SourceFileLoader("record_gpu_launches", os.path.join(ROOT, "scripts/record_gpu_launches"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        loader.exec_module(module)
        # Elements begin where their block does, of odd length or not.
        words = [[4, "00" * 4], [12, "00" * 3]]
        assert module.elements_of([5, 0, 8, 2], words, 4) == [4, 5, 9, 13], module.elements_of([5, 0, 8, 2], words, 4)
        assert module.elements_of([16], words, 2) == [4, 6, 12, 14]
        streams = {launch["key"]: module.stream(launch, [block["left"] for block in launch["blocks"]])
                   for launch in module.read_launches(path("tests.rec"))}
        last = next(launch["key"] for launch in module.read_launches(path("tests.rec"))
                    if module.opcode_of(launch).startswith("rcp.approx.f32"))
        # A driver that crashes at the second launch, faults at the fourth, refuses the sixth and answers no more at the
        # eighth: the others have results.
        class Faulty:
            def describe(self):
                return {"gpu": "faulty"}

            def run(self, launch):
                if launch["key"] == keys[1]:
                    os.kill(os.getpid(), signal.SIGSEGV)
                if launch["key"] == keys[7]:
                    time.sleep(60)
                if launch["key"] in (keys[3], keys[5]):
                    raise RuntimeError("cuLaunchKernel: fault" if launch["key"] == keys[3] else "module: refused")
                return [block["left"] for block in launch["blocks"]], 0

        module.Gpu, module.PATIENCE = Faulty, 1
        launches = list({launch["key"]: launch for launch in module.read_launches(path("tests.rec"))}.values())[:9]
        keys = [launch["key"] for launch in launches]
        errors = [row.get("error") for row in module.play(launches)["launches"].values()]
        assert errors == [None, "its process stopped: -11", None, "cuLaunchKernel: fault", None, "module: refused", None,
                          "its process took more than 1 s: -9", None], errors
        # One that crashes at its start is no missing one.
        class Crashing:
            def __init__(self):
                os.kill(os.getpid(), signal.SIGSEGV)

        module.Gpu = Crashing
        try:
            module.play(launches)
            raise AssertionError("a driver that crashes is skipped")
        except SystemExit as error:
            assert "does not start: -11" in str(error), error
        # A GPU whose last approximate reciprocals differ by a unit, then by a thousand.
        for units, explained in ((1, True), (1000, False)):
            end = 4 * 512 * 8  # three inputs and the results, eight bytes each
            changed = json.loads(json.dumps(results))
            digits = (0x3c23d70a + units).to_bytes(4, "little").hex()  # 1 / 100
            theirs = streams[last][:end - 8] + bytes.fromhex(digits) + streams[last][end - 4:]
            changed["launches"][last] = {"hash": hashlib.sha256(theirs).hexdigest(), "differences": [[end - 8, digits]]}
            write("changed.json", json.dumps(changed))
            made = script(folder, "--from", "changed.json", "--fixture", "changed.txt")
            assert (made.returncode == 0) == explained, made.stdout
            assert f"{int(explained)} within a bound, {int(not explained)} not explained" in made.stdout, made.stdout
            if explained:
                near = run_tests(folder, INGOT_STANDIN_GOLDEN=path("changed.txt"))
                assert near.returncode == 0, near.stdout
                text = read("changed.txt")
                far = (0x3c23d70a + 1000).to_bytes(4, "little").hex()
                assert text.count(digits) == 1
                write("far.txt", text.replace(digits, far))
                refused = run_tests(folder, INGOT_STANDIN_GOLDEN=path("far.txt"))
                assert refused.returncode != 0 and "of what it left: 0.00999999978, on a GPU" in refused.stdout
        # Results of another record: where the stand-in was right then, it has to be so now.
        changed["launches"][last]["hash"] = hashlib.sha256(streams[last] + b"?").hexdigest()
        write("changed.json", json.dumps(changed))
        other = script(folder, "--from", "changed.json", "--fixture", "changed.txt")
        assert other.returncode != 0 and "these results are of another record" in other.stdout, other.stdout
        print(f"gpu_launches: {count} launches repeated, held, and refused where they differ")


main()
