"""What the acceptance tests share: running a tool. Every executable that a tool writes to -o (also as a packed program,
or inside of an object or a library) is disassembled and assembled again (`vm-inspect --disasm`, `--assemble`), which
must give the same bytes. Nothing is compiled out of a cache, unless a test asks for one.

usage: tools.py BIN_DIR FILE...    the round trip of files that are there"""
import filecmp, os, pathlib, subprocess, sys, tempfile, time

# Text is several times as large as the bytes that it shows: those of larger files stand in a file beside it.
LARGEST_TEXT = 8 << 20
os.environ["INGOT_CACHE"] = "off"
MAGIC, END = b"\x89INGOT\r\n", b"INGOTEND"


def is_executable(path):
    """Does a container begin the file, or end it?"""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            return True
        if file.seek(0, os.SEEK_END) < len(END):
            return False
        file.seek(-len(END), os.SEEK_END)
        return file.read() == END


def embedded(path):
    """The container in an object file or a shared library, or None."""
    whole = path.read_bytes()
    start = whole.find(MAGIC)
    size = int.from_bytes(whole[start + 16:start + 24], "little")
    container = whole[start:start + size]
    return container if start >= 0 and container.endswith(END) else None


def python_module(bin_dir):
    """apps/python as a module, on the VM's library of this build."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "apps/python"))
    os.environ.setdefault("INGOT_LIBRARY", str(pathlib.Path(bin_dir).resolve().parent / "vm/libingot.so"))
    import ingot
    return ingot


class Tools:
    def __init__(self, bin_dir, **options):
        self.bin, self.options = pathlib.Path(bin_dir).resolve(), {"capture_output": True, "text": True, **options}

    def __call__(self, name, *args, cwd=None, **options):
        start = time.perf_counter()
        result = subprocess.run([self.bin / name, *map(str, args)], cwd=cwd, **{**self.options, **options})
        self.seconds = time.perf_counter() - start  # of the tool alone
        if result.returncode == 0:
            self.check_written(args, cwd)
        return result

    def check_written(self, args, cwd=None):
        """What a command of these arguments wrote; a kernel image that it took out is no executable."""
        if "--extract" in args:
            return
        self.check_round_trips(pathlib.Path(cwd or ".", args[i + 1]) for i, arg in enumerate(args) if arg == "-o")

    def check_round_trips(self, paths):
        """Of those that are executables, or embed one."""
        for path in map(pathlib.Path, paths):
            if not path.is_file():
                continue
            if is_executable(path):
                self.check_round_trip(path)
            elif path.suffix in (".o", ".so"):
                container = embedded(path)
                assert container is not None, f"{path} embeds no executable"
                with tempfile.TemporaryDirectory() as directory:
                    alone = pathlib.Path(directory, "embedded.ingot")
                    alone.write_bytes(container)
                    self.check_round_trip(alone)

    def check_round_trip(self, path):
        with tempfile.TemporaryDirectory() as directory:
            text, again = pathlib.Path(directory, "text.ingotasm"), pathlib.Path(directory, "again.ingot")
            beside = ["--blobs"] if path.stat().st_size > LARGEST_TEXT else []
            for args in (path, "--disasm", *beside, "-o", text), ("--assemble", text, "-o", again):
                result = subprocess.run([self.bin / "vm-inspect", *args], capture_output=True, text=True)
                assert result.returncode == 0, f"{path}: {result.stderr}"
            assert filecmp.cmp(again, path, shallow=False), f"{path} does not assemble back to the same bytes"
            assert os.access(again, os.X_OK) == os.access(path, os.X_OK), f"{path}: may only one of them be executed?"


if __name__ == "__main__":
    for file in map(pathlib.Path, sys.argv[2:]):
        Tools(sys.argv[1]).check_round_trips([file])
        print("ok  ", file, flush=True)
