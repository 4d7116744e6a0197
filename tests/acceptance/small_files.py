"""Small files that ask for much memory or time, or that break the rules of types and memory: the tools refuse them or
run them, and end with a documented exit code after two seconds of the processor at most, in 256 MiB; in a build with
sanitizers after twenty seconds, without a report. tests/data/hostile holds texts of the assembler; files that the
assembler would not write are put together here.

usage: small_files.py BIN_DIR [--sanitized]"""
import os, pathlib, resource, struct, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "scripts")]
sys.dont_write_bytecode = True
try:
    import xxhash, zstandard
    import read_executable
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
IS_SANITIZED = "--sanitized" in sys.argv
# Out of memory is a status.
os.environ.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1")
SECONDS = 20 if IS_SANITIZED else 2
# Stacks of threads are reserved whole. A sanitizer's shadow is larger than any limit.
BYTES = resource.RLIM_INFINITY if IS_SANITIZED else (256 << 20) + os.cpu_count() * (8 << 20)
MISMATCH, USAGE, UNREADABLE, CORRUPT, UNSUPPORTED, MEMORY, LATE = 1, 2, 3, 4, 5, 6, 7
DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 7, 8}
# What is asked of every file, beside the run that a case names.
LOOKS = [[], ["--verify"], ["--disasm"], ["--sections"], ["--kernels"], ["--constants"], ["--json", "-"], ["--doctor"]]
num_runs, worst, failures = 0, {"seconds": (0, "")}, []


def run(tool, *args, expected=None):
    """Runs a tool under the limits; the exit code has to be one of `expected`, or any documented one but out of
    memory."""
    global num_runs

    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([BIN / tool, *map(str, args)], preexec_fn=limit, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, cwd=work)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    num_runs += 1
    command = " ".join([tool, *map(str, args)])
    worst["seconds"] = max(worst["seconds"], (seconds, command))
    allowed = expected or DOCUMENTED - {MEMORY}
    said = out.stderr.decode(errors="replace")
    shown = out.stdout[:1 << 20] + out.stderr
    if out.returncode not in allowed:
        failures.append(f"{command}: exit code {out.returncode}, expected {sorted(allowed)}: {said[:300]}")
    if seconds > SECONDS:
        failures.append(f"{command}: {seconds:.2f} s of the processor")
    if "ERROR: " in said and "Sanitizer" in said or "runtime error" in said:
        failures.append(f"{command}: {said[:2000]}")
    if any(byte < 0x20 and byte not in b"\n\t" or byte == 0x7F for byte in shown):
        failures.append(f"{command}: prints control characters")
    return out


def look(path):
    for args in LOOKS:
        # The doctor says whether there is memory enough to run the file.
        run("vm-inspect", path, *args, expected=DOCUMENTED if args == ["--doctor"] else None)


# ---- texts

# What the assembler says, and where it is fine, what `vm-run` is asked and says.
TEXTS = {
    "closure_any": (CORRUPT, None, None), "closure_fn": (CORRUPT, None, None), "closure_mut": (CORRUPT, None, None),
    "escape": (0, [], {USAGE}), "ext": (0, ["--entry", "ro"], {MISMATCH, USAGE, UNSUPPORTED}),
    "matmul": (0, ["--deadline", 0.3], {LATE}), "nulldev": (0, [], {MISMATCH, USAGE}),
    "nullstate": (CORRUPT, None, None), "objects": (0, ["--max-memory", 1000000], {MEMORY}), "ovl": (0, [], {MISMATCH}),
    "prep": (0, ["--deadline", 0.3], {LATE}), "slots": (UNREADABLE, None, None), "states": (0, [], {MEMORY}),
    "topk": (0, [], {0}), "uninit": (0, [], {0}), "uninit2": (0, ["--input", "4xf32=1 2 3 4"], {0, USAGE}),
    "zeros": (UNREADABLE, None, None),
}


def check_texts():
    found = {path.stem for path in (HERE.parent / "data" / "hostile").glob("*.txt")}
    assert found == set(TEXTS), found ^ set(TEXTS)
    for name, (assembled, args, expected) in TEXTS.items():
        made = f"{name}.ingot"
        run("vm-inspect", "--assemble", HERE.parent / "data" / "hostile" / f"{name}.txt", "-o", made,
            expected={assembled})
        if assembled != 0:
            continue
        look(made)
        result = run("vm-run", made, "--kernels=stub", "--fuel", 300000, *args, expected=expected)
        if name == "uninit":
            values = result.stdout.partition(b"\n")[2].decode().translate(str.maketrans("[]", "  ")).split()
            assert values == ["0"] * 64, values


# ---- containers with sections that are changed

def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def assemble(text, name):
    (work / f"{name}.txt").write_text(text)
    subprocess.run([BIN / "vm-inspect", "--assemble", f"{name}.txt", "-o", f"{name}.ingot"], check=True, cwd=work)
    return (work / f"{name}.ingot").read_bytes()


def sections_of(whole):
    """The rows of the section table, each with its decompressed content."""
    rows = []
    for i, section in enumerate(read_executable.read_sections(whole)):
        kind, index, _, _, _, _, codec, align, flags, _ = struct.unpack("<IIQQQQBBHI", whole[64 + 64 * i:112 + 64 * i])
        rows.append({"kind": kind, "index": index, "codec": codec, "align": align, "flags": flags,
                     "name": whole[112 + 64 * i:128 + 64 * i], "data": bytes(section["data"])})
    return rows


def put(name, rows):
    """Writes a container with right hashes. "stored" and "size" may stand for what "data" would give."""
    rows = sorted(rows, key=lambda row: (row["kind"], row["index"]))
    table, body = b"", b""
    at = 64 + 64 * len(rows)
    for row in rows:
        data = row.get("data", b"")
        stored = row.get("stored", zstandard.ZstdCompressor(level=1).compress(data) if row["codec"] else data)
        padding = -at % (1 << row["align"])
        body += bytes(padding) + stored
        at += padding
        table += struct.pack("<IIQQQQBBHI", row["kind"], row["index"], at, len(stored), row.get("size", len(data)),
                             xxhash.xxh3_64_intdigest(stored), row["codec"], row["align"], row["flags"], 0) + row["name"]
        at += len(stored)
    body += bytes(-at % 8)
    size = 64 + len(table) + len(body) + 16
    header = read_executable.MAGIC + struct.pack("<IIQQ", 1, len(rows), size, 0)
    digest = xxhash.xxh3_64_intdigest(header + bytes(32) + table)
    (work / f"{name}.ingot").write_bytes(header + struct.pack("<Q", digest) + bytes(24) + table + body +
                                         struct.pack("<Q", size) + read_executable.END_MAGIC)
    return f"{name}.ingot"


def changed(name, rows, **sections):
    """The file with other contents of these sections, compressed."""
    number = {text: kind for kind, text in read_executable.KINDS.items()}
    by_kind = {number[section]: data for section, data in sections.items()}
    return put(name, [{**row, "data": by_kind[row["kind"]], "codec": 1} if row["kind"] in by_kind else row
                      for row in rows])


def data_of(rows, section):
    return next(row["data"] for row in rows if read_executable.KINDS[row["kind"]] == section)


def compressed(name, rows, *sections):
    return changed(name, rows, **{section: data_of(rows, section) for section in sections})


QUICK = "ingot 1\nfunction @main export (x: int) -> (n: int) {\n  return [r0]\n}\n"


def roomy(text):
    """The text with a constant of a megabyte, so that the file may take more memory as it is read."""
    return text.replace("\nfunction", '\nconstant "room" int8[1000000] = zeros\nfunction', 1)


def kernel_calls():
    """Calls of a kernel of 250 parameters of rank 8, whose extents are formulas of 63 steps. Of more calls the
    assembler says that they are too complex (vm/hostile_work_test.cc)."""
    extent = " + ".join(["n"] * 32)
    parameters = "\n".join(f"  in a{i}: int8[{', '.join([extent] * 8)}]" for i in range(250))
    call = "  call_kernel @k, [" + ", ".join(["r1"] * 250) + "], [r0]\n"
    text = (f"ingot 1\nkernel @k {{\n  int n: int64\n{parameters}\n}}\n"
            "function @main export [n](x: int8[?, ?, ?, ?, ?, ?, ?, n]) -> () {\n" + call * 50 + "  return []\n}\n")
    rows = sections_of(assemble(roomy(text), "calls"))
    yield compressed("kernel_calls", rows, "functions", "kernels"), [], {USAGE}


def tuple_operands():
    """An instruction that names one register very often."""
    wide = f"tuple({', '.join(['int'] * 250)})"
    rows = sections_of(assemble(f"ingot 1\nfunction @main export (x: {wide}) -> (n: int) {{\n  register r1: tuple(int)\n"
                                "  register r2: int\n  const_int r2, 1\n  tuple r1, [r2]\n  return [r2]\n}\n", "tuple"))
    functions = data_of(rows, "functions")
    start = functions.index(bytes([11, 2, 2]))  # const_int r2, 1
    size = functions[start - 1]
    for count in 1000, 60000:
        code = functions[start:start + size].replace(bytes([36, 1, 1, 2]), bytes([36, 1]) + varint(count) + bytes(count))
        data = functions[:start - 1] + varint(len(code)) + code + functions[start + size:]
        yield changed("tuple", rows, functions=data), [], {CORRUPT}


def types():
    """Types that copy each other twice, and very many of them."""
    rows = sections_of(assemble(QUICK, "quick"))
    signatures = data_of(rows, "signatures")
    assert signatures[0] == 1
    for count in 10, 1000, 40000:
        kinds = [b"\0", b"\7" + varint(254) + bytes(varint(0) * 254)] + [b"\7" + varint(2) + b"\1\1"] * count
        data = varint(len(kinds)) + b"".join(kinds) + signatures[2:]
        yield changed("types", rows, signatures=data), ["--input", 1], {0 if count == 10 else CORRUPT}
        doubled = [b"\0"] + [b"\7" + varint(2) + varint(i) * 2 for i in range(count)]
        yield (changed("doubled", rows, signatures=varint(len(doubled)) + b"".join(doubled) + signatures[2:]),
               ["--input", 1], {CORRUPT})


def golden_cases():
    rows = sections_of(assemble(QUICK, "quick"))
    tensor = varint(1) + b"a" + b"\2\x20" + struct.pack("<H", 1) + bytes(2) + varint(4)
    for count in 1000, 3000000:
        data = varint(1) + varint(4) + b"main\0" + bytes(16) + varint(count) + tensor * count + varint(0)
        data += bytes(-len(data) % 64)
        row = {"kind": 9, "index": 0, "codec": 1, "align": 6, "flags": 0, "name": b"golden_cases".ljust(16, b"\0"),
               "data": data}
        yield put("golden", rows + [row]), ["--self-test"], {CORRUPT if count > 1000 else USAGE}


def peak():
    """Tensors of symbolic size whose sum is the peak."""
    for count in 100, 2000:
        names = range(2, count + 2)
        text = ("ingot 1\nfunction @main export [n](x: int8[n]) -> () {\n" +
                "".join(f"  register r{i}: int8[n]\n" for i in names) +
                "".join(f"  alloc r{i}, [r0]\n" for i in names) +
                "".join(f"  release r{i}\n" for i in names) + "  return []\n}\n")
        rows = sections_of(assemble(roomy(text.replace("[r0]", "[n]")), "peak"))
        yield compressed("peak", rows, "functions"), ["--input", "4xi8=1 2 3 4"], {0}


def bombs():
    """Constants that decompress to very much."""
    rows = sections_of(assemble(QUICK, "quick"))
    frame = zstandard.ZstdCompressor(level=3).compress(bytes(64 << 20))
    for count in 1, 32, 64, 200, 100000:
        yield (put("bomb", [{**row, "codec": 1, "stored": frame * min(count, 200), "size": count * (64 << 20)}
                            if row["kind"] == 48 else row for row in rows]), ["--input", 1],
               {0, CORRUPT} if count == 1 else {CORRUPT})


def elf_image():
    """64 program headers; 63 of them name the same dynamic section of 1024 entries."""
    dynamic = 64 + 56 * 64
    size = -(-(dynamic + 16 * 1024) // 4096) * 4096
    image = bytearray(size)
    image[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 64, 0, 0, 0)
    for i in range(64):
        header = (1, 5, 0, 0, 0, size, size, 4096) if i == 0 else (2, 4, dynamic, dynamic, 0, 16384, 16384, 8)
        image[64 + 56 * i:120 + 56 * i] = struct.pack("<IIQQQQQQ", *header)
    for i in range(1024):
        image[dynamic + 16 * i:dynamic + 16 * i + 16] = struct.pack("<QQ", 0x6ffffef5, 1)
    return bytes(image)


def variants():
    """Very many variants of one image, and very many functions beside states."""
    variant = '  variant image 0 offset 0 entry "a" features 0\n'
    text = f'ingot 1\nimage "i" elf "x86_64" features 0 = hex "{elf_image().hex()}"\nkernel @k {{\n'
    rows = sections_of(assemble(text + variant * 100000 + "}\n" + QUICK.partition("\n")[2], "variants"))
    yield put("variants", rows), ["--input", 1], {0}
    count = 2000
    text = "ingot 1\n" + "".join(f"state @s{i} float32[1, 2, 3] device 0\n" for i in range(count))
    text += "".join(f"function @f{i} () -> () {{\n  return []\n}}\n" for i in range(count))
    rows = sections_of(assemble(text, "states"))
    yield compressed("states", rows, "functions", "constants", "strings"), [], DOCUMENTED


def parameters():
    """Tensors of a signature, which might share memory with each other; plan entries of a function that recurses."""
    for count in 200, 4000, 20000:
        text = ("ingot 1\nfunction @f (" + ", ".join(["p: float32[]"] * count) + ") -> () {\n  return []\n}\n" +
                QUICK.partition("\n")[2])
        rows = sections_of(assemble(text, "parameters"))
        yield compressed("parameters", rows, "signatures", "functions"), ["--input", 1], {0, CORRUPT}
    for count in 1000, 100000:
        text = ("ingot 1\nfunction @f [k](x: float32[k], n: int) -> () {\n  register r3: int\n  arena device 0, size 64\n" +
                "".join(f"  entry {i}: arena 0, offset 0, size 0, live 0..0\n" for i in range(count)) +
                "  dim r3, r2 + 1\n  call_function [], @f, [r1, r3]\n  return []\n}\n"
                "function @main export (n: int) -> (m: int) {\n  register r1: float32[4]\n  alloc r1, [4]\n"
                "  call_function [], @f, [r1, r0]\n  return [r0]\n}\n")
        rows = sections_of(assemble(text, "recursion"))
        yield (compressed("recursion", rows, "memory_plans"), ["--input", 1, "--max-memory", 1000000],
               {MEMORY} if count == 1000 else {CORRUPT})


def many_functions():
    """Very many functions, and calls of the last."""
    for count in 3000, 30000:
        text = ("ingot 1\n" + "".join(f"function @f{i} () -> () {{\n  return []\n}}\n" for i in range(count)) +
                QUICK.partition("\n")[2].replace("{\n", "{\n" + f"  call_function [], @f{count - 1}, []\n" * count))
        rows = sections_of(assemble(roomy(text), "functions"))
        yield compressed("functions", rows, "functions", "strings"), ["--input", 1], {0 if count == 3000 else LATE}


def messages():
    """Texts of many arguments, each of which is long."""
    for builtin, first in ("print", "r4"), ("assert", "r5, r4"):
        text = ('ingot 1\nfunction @main export () -> (n: int) {\n  register r0: object("any")\n  register r1: int\n'
                "  register r2: tuple(int)\n  register r3: string\n  register r4: string\n  register r5: bool\n"
                "  const_int r1, 1\n  tuple r2, [r1]\n  move r0, r2\n  const_bool r5, false\n"
                f'  const_string r3, "{"a" * 10000}"\n  const_string r4, ""\n' +
                "  const_int r1, 0\n  call_builtin [r0], sequence_splice, [r0, r1, r1, r0]\n" * 15 +
                f"  call_builtin [], {builtin}, [{first}" + ", r0, r3" * 3000 + "]\n  return [r1]\n}\n")
        rows = sections_of(assemble(text, builtin))
        yield (compressed(builtin, rows, "functions"), ["--deadline", 0.5, "--max-memory", 16000000],
               {0 if builtin == "print" else MISMATCH})


def straight_lines():
    """Instructions in a row, each of which copies or zeroes much memory."""
    size = 64 << 20
    alloc = f"  alloc r0, [{size}]\n"
    for name, registers, first, step in (
            ("alloc", "", "", alloc + "  release r0\n"),
            ("unwrap", f"  register r1: int8[{size - 1}]\n  register r2: optional(int8[{size - 1}])\n",
             alloc + f"  view r1, r0, 1, [{size - 1}]\n  some r2, r1\n", "  unwrap r1, r2\n")):
        text = (f"ingot 1\nfunction @main export () -> () {{\n  register r0: int8[{size}]\n{registers}{first}" +
                step * 1000 + "  return []\n}\n")
        rows = sections_of(assemble(text, name))
        # What is allocated and not written may be zeroed without work.
        yield compressed(name, rows, "functions"), ["--deadline", 0.3], {LATE} if name == "unwrap" else {0, LATE}


def printed():
    """Results of many axes, and many of them: they are printed in part."""
    for name, dims, count in ("axes", "7, 7, 7, 7, 7, 7, 7, 7", 1), ("results", "6, 6, 6, 6", 2000):
        text = (f'ingot 1\nconstant "w" float64[1] = 0.30000000000000004\nfunction @main export () -> (' +
                ", ".join(f"y{i}: float64[{dims}]" for i in range(count)) +
                f") {{\n  register r0: constant float64[1]\n  register r1: float64[{dims}]\n  const_tensor r0, #0\n"
                f"  alloc r1, [{dims}]\n  call_builtin [], broadcast_to, [r1, r0]\n  return [r1" + ", r1" * (count - 1) +
                "]\n}\n")
        rows = sections_of(assemble(roomy(text), name))
        yield compressed(name, rows, "functions"), [], {0}


def differences():
    """Very many functions that name others, compared with themselves."""
    for count in 1000, 10000:
        text = "ingot 1\n" + "".join(f"function @f{i} () -> () {{\n  call_function [], @f{count - 1 - i}, []\n"
                                     "  return []\n}\n" for i in range(count))
        made = compressed("compared", sections_of(assemble(roomy(text), "compared")), "functions", "strings")
        run("vm-inspect", made, "--diff", made, expected={0})
    return ()


def symbols():
    """Very many symbols, each of which a parameter's type names."""
    for count in 3000, 30000:
        names = [f"y_{i:07d}" for i in range(count)]
        text = (f"ingot 1\nfunction @main export [{', '.join(names)}](" +
                ", ".join(f"x{i}: int8[{name}]" for i, name in enumerate(names)) +
                ") -> () {\n  return []\n}\n")
        rows = sections_of(assemble(roomy(text), "symbols"))
        yield compressed("symbols", rows, "signatures", "strings"), [], {USAGE}


def flow():
    """Registers whose state at every block depends on the block before."""
    size, rounds = 46000, 63
    text = "ingot 1\nfunction @main () -> () {\n  register r0: bool\n"
    text += "".join(f"  register r{i}: int\n" for i in range(1, size)) + "  const_bool r0, true\n"
    text += "".join(f"  const_int r{i}, 1\n" for i in range(1, rounds + 2))
    text += "".join(f"c{i}:\n  release r{i}\n  branch r0, x0, c{i + 1}\n" for i in range(1, rounds + 1))
    text += f"c{rounds + 1}:\n  return []\n"
    text += "".join(f"x{i}:\n  jump x{i + 1}\n" for i in range(size - 1000)) + f"x{size - 1000}:\n  return []\n}}\n"
    (work / "flow.txt").write_text(text)
    run("vm-inspect", "--assemble", "flow.txt", "-o", "flow.ingot", expected={CORRUPT})
    return ()


def main():
    check_texts()
    for make in (kernel_calls, tuple_operands, types, golden_cases, peak, bombs, variants, parameters, many_functions,
                 messages, straight_lines, printed, differences, symbols, flow):
        for made, args, expected in make():
            look(made)
            run("vm-run", made, "--kernels=stub", "--fuel", 10000, *args, expected=expected)
    print(f"{num_runs} runs; the longest took {worst['seconds'][0]:.2f} s of the processor: {worst['seconds'][1]}")
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ingot-small-") as folder:
        work = pathlib.Path(folder)
        sys.exit(main())
