"""scripts/long_run goes on where the recorded parts ended and records what a part did and found; scripts/reliability
adds the parts up.

usage: long_run.py BIN_DIR        exits 77 (skipped) outside of a git working tree"""
import json, pathlib, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv[1]).resolve().parent


def main():
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode != 0:
        print("SKIP: no git working tree, whose commit a record names")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "runs.jsonl"

        def part(*words):
            command = [sys.executable, ROOT / "scripts/long_run", "--build", BUILD, "--record", file, *words]
            return subprocess.run(command, capture_output=True, text=True)

        for number, count in enumerate((400, 300)):
            ran = part("programs", "--count", str(count))
            assert ran.returncode == 0, ran
            assert f"cases {number * 400} to {number * 400 + count}: 0 found" in ran.stdout, ran.stdout
        parts = [json.loads(line) for line in file.read_text().splitlines()]
        assert [p["count"] for p in parts] == [400, 300] and all(p["kind"] == "programs" for p in parts), parts
        assert all(0 < p["refused"] < p["count"] and len(p["commit"].rstrip("+")) == 10 for p in parts), parts

        # What ends in another way than a search does is not recorded.
        missing = part("--build", folder, "programs", "--count", "10")
        assert missing.returncode != 0 and len(file.read_text().splitlines()) == 2, missing

        file.write_text(file.read_text() + "".join(json.dumps(line) + "\n" for line in [
            {"kind": "graphs", "commit": "0", "count": 5, "found": 1, "target": "t", "nodes": 60, "states": {"ok": 4}},
            {"kind": "fuzz", "commit": "0", "count": 1000, "found": 0, "target": "npy", "processor_seconds": 3600.0},
            {"kind": "fuzz", "commit": "1", "count": 2000, "found": 1, "target": "npz", "processor_seconds": 1800.0}]))
        said = subprocess.run([sys.executable, ROOT / "scripts/reliability", "--long-runs", file], capture_output=True,
                              text=True, check=True).stdout
        refused = sum(p["refused"] for p in parts)
        for text in (f"programs and mutants: 700, of which {refused} were refused and 0 disagreed (2 parts on 1 ",
                     "random ONNX graphs for t: 5 of 60 nodes; 1 wrong",
                     "2 targets, 1.5 hours (0.5 hours each at least), 3,000 executions, 1 runs ended early"):
            assert text in said, said
    return 0


if __name__ == "__main__":
    sys.exit(main())
