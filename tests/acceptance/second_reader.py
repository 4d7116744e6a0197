"""formats/README.md is normative: a reader that was written from it alone (scripts/read_executable.py) and vm-inspect
find the same contents in executables, and refuse damaged ones for the same reason.

usage: second_reader.py BIN_DIR [TEST ...]    exits 77 (skipped) without xxhash"""
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

from tools import Tools

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests/data"
CHECKS = re.findall(r'^INGOT_CONTAINER_CHECK\(\w+, "(\w+)"', (ROOT / "formats/container_checks.def").read_text(), re.M)
sys.path.insert(0, str(ROOT / "scripts"))
try:
    import xxhash

    import read_executable as reader
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)
try:
    import zstandard
except ImportError:
    zstandard = None


def run(*args):
    return subprocess.run([str(arg) for arg in args], capture_output=True, text=True, check=False)


def dims_text(dims, names):
    """Dims as the tools print them, where each is a constant or a lone symbol; None otherwise."""
    texts = []
    for dim in dims:
        if isinstance(dim, list) or dim is None:
            return None
        texts.append(names[int(dim[1:])] if isinstance(dim, str) else str(dim))
    return "[" + ", ".join(texts) + "]"


def refusal(message):
    """The name of the container's check that a message ends with; "program" for checks of what is inside."""
    found = re.search(r"\[(\w+)\]\s*$", message)
    return found[1] if found and found[1] in CHECKS else "program"


class SecondReader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-reader-"))
        cls.files = []
        for name, args in {"digits": [DATA / "digits.onnx"], "mlp": [DATA / "mlp.py"],
                           "kept": [DATA / "digits.onnx", "--keep-prepare"]}.items():
            path = cls.dir / f"{name}.ingot"
            made = Tools(BIN)("vm-compile", *args, "-o", path)
            assert made.returncode == 0, made.stderr
            cls.files.append(path)
        # With states, weights outside, a signature, a launcher in front; compressed ones where zstandard is there.
        cls.files += [path for path in sorted((DATA / "kept").glob("*.ingot")) if zstandard or "zstd" not in path.name]

    def both(self, path):
        shown = run(BIN / "vm-inspect", path, "--json", "-", "--constants", "--kernels", "--sections")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        sections = reader.read_sections(path.read_bytes())
        return json.loads(shown.stdout), sections, reader.Program(sections).json

    def test_sections(self):
        for path in self.files:
            first, sections, _ = self.both(path)
            name = lambda s: s["name"] + (f'[{s["index"]}]' if s["index"] else "")
            keys = ("offset", "stored_size", "size", "codec", "hash")
            self.assertEqual([{"section": name(s), **{k: s[k] for k in keys}} for s in sections], first["sections"])

    def test_what_is_declared(self):
        for path in self.files:
            first, _, second = self.both(path)
            self.assertEqual(first["metadata"], second["metadata"])
            self.assertEqual([(f["name"], f["exported"], len_of(f)) for f in first["functions"]],
                             [(f["name"], f["exported"], (len(f["instructions"]), f["registers"]))
                              for f in second["functions"]])
            compared = 0
            for ours, theirs in zip(first["kernels"], second["kernels"], strict=True):
                names = [argument["name"] for argument in theirs["ints"]]
                self.assertEqual((ours["name"], ours["ints"]), (theirs["name"], names))
                self.assertEqual([(v["image"], v["offset"]) for v in ours["variants"]],
                                 [(v["image"], v["offset"]) for v in theirs["variants"]])
                for text, param in zip(ours["params"], theirs["params"], strict=True):
                    dims = dims_text(param["dims"], names)
                    if dims is not None:
                        self.assertEqual(text, f'{param["role"]} {param["name"]}: {param["dtype"]}{dims}')
                        compared += 1
            self.assertGreater(compared, 3)
            self.assertEqual([(c["name"], c["type"]) for c in first["constants"]],
                             [(c["name"], c["dtype"] + dims_text(c["dims"], [])) for c in second["constants"]])

    def test_instructions(self):
        for path in self.files:
            _, _, second = self.both(path)
            for function in second["functions"]:
                text = run(BIN / "vm-inspect", path, "--disasm", function["name"]).stdout
                words = re.findall(r"^  (\w+)", text, re.MULTILINE)
                ops = [word for word in words if word not in ("register", "arena", "entry", "note")]
                self.assertEqual(ops, [instruction["op"] for instruction in function["instructions"]])

    def test_images(self):
        for path in self.files:
            _, _, second = self.both(path)
            for image in second["images"]:
                out = self.dir / "image.so"
                self.assertEqual(run(BIN / "vm-inspect", path, "--extract", image["name"], "-o", out).returncode, 0)
                self.assertEqual(hashlib.sha256(out.read_bytes()).hexdigest(), image["sha256"])

    def test_damage_is_refused_for_the_same_reason(self):
        whole = self.files[1].read_bytes()
        count = struct.unpack("<I", whole[12:16])[0]
        table_end = 64 + 64 * count
        mutants = {}
        for at in range(64 + 64 * 3):  # the header and the entries of three sections
            damaged = bytearray(whole)
            damaged[at] ^= 1
            mutants[f"byte {at}"] = bytes(damaged)
            damaged[32:40] = bytes(8)
            damaged[32:40] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(damaged[:table_end])))
            mutants[f"byte {at}, hash renewed"] = bytes(damaged)
        for size in (0, 7, 63, 64, table_end, len(whole) - 17, len(whole) - 1):
            mutants[f"cut to {size}"] = whole[:size]
        mutants["a byte more"] = whole + b"\0"
        path = self.dir / "damaged.ingot"
        seen = {}
        for name, content in mutants.items():
            path.write_bytes(content)
            try:
                reader.Program(reader.read_sections(content))
                second = None
            except reader.Refused as refused:
                second = refusal(str(refused))
            shown = run(BIN / "vm-inspect", path, "--verify")
            errors = [line for line in shown.stderr.splitlines() if "error:" in line]
            first = refusal(errors[-1]) if shown.returncode != 0 else None
            self.assertEqual(first, second, f"{name}: {shown.stderr}")
            seen[second] = seen.get(second, 0) + 1
        print("refusals:", ", ".join(f"{name} {times}" for name, times in sorted(seen.items(), key=str)))
        self.assertGreaterEqual(len(seen), 12)


def len_of(function):
    return function["instructions"], function["registers"]


if __name__ == "__main__":
    unittest.main(verbosity=1)
