"""What the acceptance tests share: running a tool, where every executable that a tool writes is taken apart and put
together again on the way (`vm-inspect --disasm`, `--assemble`), which must give the same bytes.

usage: tools.py BIN_DIR FILE.ingot...    the round trip of files that are there"""
import os, pathlib, subprocess, sys, tempfile

# Text is several times as large as what it shows; INGOT_ROUND_TRIP_BYTES says where to stop.
LARGEST = int(os.environ.get("INGOT_ROUND_TRIP_BYTES", 8 << 20))


class Tools:
    def __init__(self, bin_dir, **options):
        self.bin, self.options = pathlib.Path(bin_dir).resolve(), {"capture_output": True, "text": True, **options}

    def __call__(self, name, *args, cwd=None, **options):
        result = subprocess.run([self.bin / name, *map(str, args)], cwd=cwd, **{**self.options, **options})
        if result.returncode == 0 and "--compress" not in args:
            self.check_round_trips(pathlib.Path(cwd or ".", args[i + 1]) for i, arg in enumerate(args) if arg == "-o")
        return result

    def check_round_trips(self, paths):
        """Of those that are executables, and not too large."""
        for path in map(pathlib.Path, paths):
            if path.suffix == ".ingot" and path.exists() and path.stat().st_size <= LARGEST:
                self.check_round_trip(path)

    def check_round_trip(self, path):
        with tempfile.TemporaryDirectory() as directory:
            text, again = pathlib.Path(directory, "text.ingotasm"), pathlib.Path(directory, "again.ingot")
            for args in (path, "--disasm", "-o", text), ("--assemble", text, "-o", again):
                result = subprocess.run([self.bin / "vm-inspect", *args], **self.options)
                assert result.returncode == 0, f"{path}: {result.stderr}"
            assert again.read_bytes() == path.read_bytes(), f"{path} does not assemble back to the same bytes"


if __name__ == "__main__":
    for file in sys.argv[2:]:
        Tools(sys.argv[1]).check_round_trip(pathlib.Path(file))
        print("ok  ", file, flush=True)
