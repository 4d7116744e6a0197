#!/usr/bin/env python3
"""A second reader of Ingot executables, written from formats/README.md alone: it shares no code with the first one.

Job: reads a file, checks the container as the page says, decodes the sections of the program and prints all of it as
JSON. Tests compare what it says with vm-inspect. Names of operand kinds come from vm/program/opcodes.def, to which the
page refers. Needs xxhash, and zstandard where a section is compressed.

usage: scripts/read_executable.py model.ingot [--image INDEX -o kernels.so]
Exits 4, with the name of the failed check in brackets, when the file is refused."""
import argparse
import hashlib
import json
import os
import re
import struct
import sys

import xxhash

HEADER, ENTRY, TRAILER = 64, 64, 16
MAGIC, END_MAGIC = b"\x89INGOT\r\n", b"INGOTEND"
MOST_SECTIONS, MOST_DECOMPRESSED, MOST_WINDOW = 4096, 4 << 30, 1 << 27
FREE_DECOMPRESSED, DECOMPRESSED_PER_BYTE = 64 << 20, 1024
LEAST_FRAME = 1 << 16  # content of all zstd frames but a section's last
UNHASHED = 16 << 20  # raw constants above this are not hashed at every opening
KINDS = {1: "metadata", 2: "strings", 3: "signatures", 4: "functions", 5: "kernels", 6: "memory_plans", 7: "constants",
         8: "debug_map", 9: "golden_cases", 10: "weights", 32: "kernel_image", 48: "constant_data", 64: "signature"}
TYPE_NAMES = ["int64", "float64", "bool", "string", "dtype"]
STORAGES = ["owned", "arena", "constant", "borrowed", "borrowed_mut"]
STEPS = ["const", "slot", "+", "-", "*", "//", "%", "min", "max", "==", "!=", "<", "<=", "select"]


class Refused(Exception):
    """A check failed; the message ends with its name in brackets."""


def demand(holds, check, message):
    if not holds:
        raise Refused(f"{message} [{check}]")


class Cursor:
    """Reads the items of the page's notation; what is cut short or superfluous is refused."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        demand(count <= len(self.data) - self.at, "decode", "a section ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def fixed(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def v(self):
        value = 0
        for i in range(10):
            byte = self.fixed("B")
            value |= (byte & 127) << (7 * i)
            if byte < 128:
                demand((byte or not i) and value < 1 << 64, "decode", "an integer is not in its shortest form")
                return value
        raise Refused("an integer is too long [decode]")

    def s(self):
        value = self.v()
        return (value >> 1) ^ -(value & 1)

    def opt(self):
        value = self.v()
        return value - 1 if value else None

    def list(self, item):
        count = self.v()
        demand(count <= len(self.data) - self.at, "decode", "a list is longer than its section")
        return [item() for _ in range(count)]

    def end(self):
        demand(self.at == len(self.data), "decode", "bytes follow the end of a section's content")


# ---- The container
def check_zstd(stored, size):
    import zstandard
    contents, stated = [], 0
    while stored or not contents:
        demand(stored[:4] == b"\x28\xb5\x2f\xfd", "zstd_frame", "no zstd frame")
        frame = zstandard.get_frame_parameters(stored)
        demand(frame.dict_id == 0, "zstd_frame", "a frame with a dictionary")
        demand(stated + frame.content_size <= size, "zstd_size", "the frames' content sizes are other ones")
        demand(frame.window_size <= MOST_WINDOW, "zstd_window", "a frame's window is too large")
        machine = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW).decompressobj()
        try:
            content = machine.decompress(stored)
        except zstandard.ZstdError as error:
            raise Refused(f"{error} [zstd_data]") from error
        demand(machine.eof and len(content) == frame.content_size, "zstd_data", "a frame does not hold what it states")
        stored = machine.unused_data
        demand(not stored or len(content) >= LEAST_FRAME, "zstd_frame", "a small frame before others")
        contents.append(content)
        stated += len(content)
    demand(stated == size, "zstd_size", "the frames' content sizes are other ones")
    return b"".join(contents)


def find_container(whole):
    """The container's bytes: the file's, or the end of a packed program's."""
    if whole[:8] == MAGIC or len(whole) < TRAILER or whole[-8:] != END_MAGIC:
        return whole
    size = struct.unpack("<Q", whole[-16:-8])[0]
    demand(size <= len(whole) and (len(whole) - size) % 4096 == 0, "packed_offset", "no container at a page boundary")
    return whole[len(whole) - size:]


def read_sections(whole):
    """The section table as dicts with their decompressed `data`; every check of the page in its order."""
    file = find_container(whole)
    demand(file[:8] == MAGIC and len(file) >= HEADER + TRAILER, "magic", "no Ingot executable")
    version, count, size, features, table_hash = struct.unpack("<IIQQQ", file[8:40])
    demand(version == 1, "version", f"version {version}")
    demand(features == 0, "features", "unknown required features")
    demand(size == len(file), "file_size", f"the header says {size} bytes, there are {len(file)}")
    demand(count <= MOST_SECTIONS, "section_count", f"{count} sections")
    table_end = HEADER + count * ENTRY
    demand(table_end + TRAILER <= size, "table_inside", "the section table does not fit")
    hashed = file[:32] + bytes(8) + file[40:table_end]
    demand(xxhash.xxh3_64_intdigest(hashed) == table_hash, "table_hash", "the table's hash differs")
    demand(not any(file[40:64]), "header_reserved", "reserved header bytes are not zero")
    demand(file[-8:] == END_MAGIC and file[-16:-8] == struct.pack("<Q", size), "trailer", "a wrong trailer")

    sections, before, end, decompressed = [], None, table_end, 0
    for i in range(count):
        entry = file[HEADER + i * ENTRY:HEADER + (i + 1) * ENTRY]
        (kind, index, offset, stored, length, digest, codec, alignment, flags,
         reserved) = struct.unpack("<IIQQQQBBHI", entry[:48])
        text = entry[48:].rstrip(b"\0")
        demand(before is None or before < (kind, index), "order", "sections do not ascend")
        before = (kind, index)
        well_formed = re.fullmatch(rb"[a-z0-9_]{1,16}", text) is not None
        name = text.decode("latin-1") if well_formed else "?"
        demand(kind in KINDS or not flags & 1, "kind", f'required section "{name}" of unknown kind {kind}')
        demand(well_formed and KINDS.get(kind, name) == name, "name", f"section {i} has a wrong name")
        demand(reserved == 0 and flags <= 1, "entry_reserved", f"{name}: reserved fields are not zero")
        demand(codec <= 1, "codec", f"{name}: unknown codec {codec}")
        demand(alignment <= 16, "alignment", f"{name}: alignment 2^{alignment}")
        place = -(-end // (1 << alignment)) * (1 << alignment)
        demand(offset == place, "placement", f"{name} stands at {offset}, not at {place}")
        demand(offset <= size - TRAILER and stored <= size - TRAILER - offset, "inside", f"{name} is not inside")
        demand(not any(file[end:offset]), "padding", f"padding before {name} is not zero")
        demand(codec == 1 or stored == length, "raw_size", f"{name}: two sizes")
        decompressed += length if codec == 1 else 0
        most = min(MOST_DECOMPRESSED, FREE_DECOMPRESSED + DECOMPRESSED_PER_BYTE * size)
        demand(decompressed <= most, "size_cap", "the sections decompress to too much")
        end = offset + stored
        sections.append({"kind": kind, "name": name, "index": index, "offset": offset, "stored_size": stored,
                         "size": length, "codec": ["none", "zstd"][codec], "hash": f"{digest:016x}",
                         "required": bool(flags & 1)})
    trailer = -(-end // 8) * 8
    demand(trailer + TRAILER == size, "end", "the trailer does not follow the last section")
    demand(not any(file[end:trailer]), "padding", "padding before the trailer is not zero")
    for section in sections:
        data = file[section["offset"]:section["offset"] + section["stored_size"]]
        if section["name"] != "constant_data" or section["codec"] != "none" or len(data) <= UNHASHED:
            digest = f"{xxhash.xxh3_64_intdigest(data):016x}"
            demand(digest == section["hash"], "section_hash", f'{section["name"]}: the hash differs')
        section["data"] = check_zstd(data, section["size"]) if section["codec"] == "zstd" else data
    return sections


# ---- The program
def opcode_table():
    """number -> (text, [(operand kind, operand name)]) from vm/program/opcodes.def."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vm", "program", "opcodes.def")
    rows = {}
    with open(path, encoding="utf-8") as file:
        for text in file.read().split("\nINGOT_OPCODE(")[1:]:  # a row may take several lines
            row = re.match(r'(\d+), \w+, "(\w+)",\s', text)
            rows[int(row[1])] = (row[2], re.findall(r"\((\w+), \w+, (\w+)\)", text[row.end():]))
    return rows


class Program:
    """Decodes a program's sections; `self.json` is what was read."""

    def __init__(self, sections):
        self.sections = {(s["name"], s["index"]): s["data"] for s in sections}
        for name in ("metadata", "strings", "signatures", "functions", "kernels", "memory_plans", "constants",
                     "constant_data"):
            demand((name, 0) in self.sections, "sections", f"there is no section {name}")
        cursor = self.open("strings")
        self.strings = cursor.list(lambda: cursor.take(cursor.v()).decode("utf-8"))
        cursor.end()
        self.opcodes = opcode_table()
        self.json = {}
        self.cursor = cursor
        for read in (self.read_metadata, self.read_signatures, self.read_functions, self.read_kernels, self.read_plans,
                     self.read_constants, self.read_weights, self.read_debug_map, self.read_golden_cases):
            read()

    def open(self, name, index=0):
        self.cursor = Cursor(self.sections[name, index])
        return self.cursor

    # -- Items that several sections share.
    def text(self):
        index = self.cursor.v()
        demand(index < len(self.strings), "decode", "a text beyond the strings")
        return self.strings[index]

    def dtype(self):
        code, bits, lanes = self.cursor.fixed("B"), self.cursor.fixed("B"), self.cursor.fixed("H")
        return dtype_name(code, bits, lanes)

    def dim(self):
        """A formula as nested lists, a constant as itself, a slot as "$n"; None where it is unknown."""
        count, stack = self.cursor.v(), []
        demand(count <= 64, "decode", "a formula of too many steps")
        for _ in range(count):
            operator = self.cursor.fixed("B")
            demand(operator < len(STEPS), "decode", "an unknown step of a formula")
            if operator == 0:
                stack.append(self.cursor.s())
            elif operator == 1:
                stack.append(f"${self.cursor.s()}")
            else:
                arity = 3 if STEPS[operator] == "select" else 2
                demand(len(stack) >= arity, "decode", "a formula takes more than there is")
                stack[-arity:] = [[STEPS[operator]] + stack[-arity:]]
        demand(len(stack) == (1 if count else 0), "decode", "a formula that leaves not one value")
        return stack[0] if stack else None

    def dims(self):
        return self.cursor.list(self.dim)

    # -- Sections.
    def read_metadata(self):
        c = self.open("metadata")
        self.json["metadata"] = dict(c.list(lambda: (self.text(), self.text())))
        self.json["devices"] = c.list(lambda: {"kind": self.text(), "index": c.fixed("I")})
        c.end()

    def read_type(self):
        c = self.cursor
        kind = c.fixed("B")
        if kind < 5:
            return {"kind": TYPE_NAMES[kind]}
        if kind == 5:
            return {"kind": "shape", "dims": self.dims()}
        if kind == 6:
            dtype, storage, device = self.dtype(), c.fixed("B"), c.fixed("B")
            demand(storage < len(STORAGES), "decode", f"unknown storage {storage}")
            return {"kind": "tensor", "dtype": dtype, "storage": STORAGES[storage], "device": device,
                    "dims": self.dims()}
        if kind in (7, 8):
            return {"kind": ["tuple", "optional"][kind - 7], "types": c.list(c.v)}
        if kind == 9:
            return {"kind": "closure", "params": c.list(c.v), "results": c.list(c.v)}
        demand(kind == 10, "decode", f"unknown type {kind}")
        return {"kind": "object", "class": self.text()}

    def read_signatures(self):
        c = self.open("signatures")
        self.types = c.list(self.read_type)
        for i, entry in enumerate(self.types):
            used = entry.get("types", []) + entry.get("params", []) + entry.get("results", [])
            demand(all(j < i for j in used), "decode", "a type refers to one that does not stand before it")
        named = lambda: {"name": self.text(), "type": self.types[c.v()]}
        self.signatures = c.list(lambda: {
            "symbols": c.list(lambda: {"name": self.text(), "min": c.s(), "max": c.s(), "state": c.opt()}),
            "params": c.list(named), "results": c.list(named)})
        self.json["externals"] = c.list(
            lambda: {"name": self.text(), "signature": self.signatures[c.v()], "effects": c.v()})
        c.end()

    def read_operand(self, kind):
        c = self.cursor
        if kind in ("UseList", "DefList"):
            return c.list(c.v)
        if kind == "Int":
            return c.s()
        if kind == "Float":
            return struct.unpack("<d", c.take(8))[0]
        if kind == "Text":
            return self.text()
        if kind == "Dim":
            return self.dim()
        if kind == "DimList":
            return self.dims()
        if kind == "DType":
            value = c.v()
            return dtype_name(value & 255, value >> 8 & 255, value >> 16)
        return c.v()

    def read_instruction(self):
        number = self.cursor.fixed("B")
        demand(number in self.opcodes, "decode", f"unknown opcode {number}")
        text, operands = self.opcodes[number]
        return {"op": text, **{name: self.read_operand(kind) for kind, name in operands}}

    def read_function(self):
        c = self.cursor
        name, exported, signature = self.text(), c.fixed("B"), self.signatures[c.v()]
        registers = c.list(c.v)
        count, size = c.v(), c.v()
        code = Cursor(c.take(size))
        self.cursor = code
        instructions = [self.read_instruction() for _ in range(count)]
        code.end()
        self.cursor = c
        return {"name": name, "exported": bool(exported), "signature": signature, "registers": len(registers) + len(
            signature["symbols"]) + len(signature["params"]), "instructions": instructions}

    def read_functions(self):
        c = self.open("functions")
        self.json["functions"] = c.list(self.read_function)
        c.end()

    def read_kernel(self):
        c = self.cursor
        kernel = {"name": self.text(), "device": c.fixed("B"),
                  "ints": c.list(lambda: {"name": self.text(), "dtype": self.dtype()}),
                  "params": c.list(lambda: {"name": self.text(), "role": ["in", "out", "inout"][c.fixed("B")],
                                            "dtype": self.dtype(), "dims": self.dims(), "alignment": c.v(),
                                            "in_place": c.opt()}),
                  "workspace": self.dim(), "operations": self.dim(), "bytes": self.dim(), "effects": c.v()}
        launches = c.list(lambda: {"variant": c.v(), "entry": self.text(), "sizes": self.dims()})
        if launches:
            kernel["launches"] = launches
        kernel["variants"] = c.list(
            lambda: {"image": c.v(), "offset": c.v(), "entry": self.text(), "features": c.fixed("Q")})
        kernel["externals"] = c.list(c.v)
        kernel["messages"] = c.list(self.text)
        return kernel

    def read_kernels(self):
        c = self.open("kernels")
        images = c.list(lambda: {"name": self.text(), "format": ["elf", "ptx"][c.fixed("B")], "arch": self.text(),
                                 "features": c.fixed("Q")})
        self.json["kernels"] = c.list(self.read_kernel)
        c.end()
        for i, image in enumerate(images):
            demand(("kernel_image", i) in self.sections, "sections", f"there is no kernel image {i}")
            data = self.sections["kernel_image", i]
            image.update(size=len(data), sha256=hashlib.sha256(data).hexdigest())
        self.json["images"] = images

    def read_plans(self):
        c = self.open("memory_plans")
        arena = lambda: {"device": c.fixed("B"), "bytes": self.dim()}
        entry = lambda: {"arena": c.v(), "offset": self.dim(), "size": self.dim(), "first": c.v(), "last": c.v(),
                         "alias": c.opt()}
        for function in self.json["functions"]:
            function["plan"] = {"arenas": c.list(arena), "entries": c.list(entry)}
        c.end()

    def read_constant(self):
        c, data = self.cursor, self.sections["constant_data", 0]
        constant = {"name": self.text(), "dtype": self.dtype(), "dims": c.list(c.v)}
        function = c.opt()
        if function is not None:
            return {**constant, "function": function, "result": c.v()}
        offset, size = c.v() * 64, c.v()
        demand(offset <= len(data) and size <= len(data) - offset, "decode", "a constant beyond the data")
        return {**constant, "size": size, "sha256": hashlib.sha256(data[offset:offset + size]).hexdigest()}

    def read_constants(self):
        c = self.open("constants")
        self.json["constants"] = c.list(self.read_constant)
        grows = lambda: {"axis": c.fixed("B"), "length": c.v()} if c.fixed("B") else None
        self.json["states"] = c.list(lambda: {"name": self.text(), "dtype": self.dtype(), "dims": c.list(c.v),
                                              "device": c.fixed("B"), "initial": c.opt(), "grows": grows()})
        c.end()

    def read_weights(self):
        if ("weights", 0) not in self.sections:
            return
        c = self.open("weights")
        self.json["weight_files"] = c.list(lambda: {"path": self.text(), "size": c.fixed("Q"),
                                                    "hash": f'{c.fixed("Q"):016x}', "sha256": c.take(32).hex()})

        def weight():
            constant, file = self.json["constants"][c.v()], c.opt()
            constant["replaceable"] = True
            if file is not None:
                constant.update(file=self.json["weight_files"][file]["path"], offset=c.v())

        c.list(weight)
        c.end()

    def read_debug_map(self):
        if ("debug_map", 0) not in self.sections:
            return
        c = self.open("debug_map")
        for function in self.json["functions"]:
            function["notes"] = c.list(lambda: {"instruction": c.v(), "source": self.text()})
        c.end()


    def read_golden_cases(self):
        if ("golden_cases", 0) not in self.sections:
            return
        c = self.open("golden_cases")
        word = lambda: c.take(c.v()).decode("utf-8")

        def tensor():
            name, dtype, dims, offset, size = word(), self.dtype(), c.list(c.v), c.v() * 64, c.v()
            demand(offset <= len(c.data) and size <= len(c.data) - offset, "decode", "a tensor beyond its section")
            return {"name": name, "dtype": dtype, "dims": dims,
                    "sha256": hashlib.sha256(c.data[offset:offset + size]).hexdigest()}

        self.json["golden_cases"] = c.list(lambda: {
            "function": word(), "origin": ["file", "reference"][c.fixed("B")], "relative": c.fixed("d"),
            "absolute": c.fixed("d"), "inputs": c.list(tensor), "outputs": c.list(tensor)})


def signed_digest(whole):
    """What signatures sign, and the (key, signature) pairs that are there."""
    file = find_container(whole)
    version, count, _, features = struct.unpack("<IIQQ", file[8:32])
    digest = hashlib.sha256(b"ingot signature 1\n" + struct.pack("<IQ", version, features))
    pairs = []
    for i in range(count):
        entry = file[HEADER + i * ENTRY:HEADER + (i + 1) * ENTRY]
        kind, index, offset, stored, size, _, codec, alignment, flags = struct.unpack("<IIQQQQBBH", entry[:44])
        name, data = entry[48:].rstrip(b"\0"), file[offset:offset + stored]
        if KINDS.get(kind) == "signature":
            pairs.append((data[:32].hex(), data[32:].hex()))
            continue
        fields = struct.pack("<IIQQBBHB", kind, index, stored, size, codec, alignment, flags, len(name))
        section = hashlib.sha256(fields + name)
        for at in range(0, stored, 1 << 20):
            section.update(hashlib.sha256(data[at:at + (1 << 20)]).digest())
        digest.update(section.digest())
    return digest.hexdigest(), pairs


def dtype_name(code, bits, lanes):
    names = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 6: "bool"}
    name = "bool" if code == 6 else f"{names.get(code, f'code{code}_')}{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executable")
    parser.add_argument("--image", type=int, help="write this kernel image to -o instead")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    with open(options.executable, "rb") as file:
        whole = file.read()
    try:
        sections = read_sections(whole)
        program = Program(sections)
    except Refused as refusal:
        print(f"{options.executable}: {refusal}", file=sys.stderr)
        return 4
    if options.image is not None:
        with open(options.output, "wb") as file:
            file.write(program.sections["kernel_image", options.image])
        return 0
    for section in sections:
        del section["data"]
    json.dump({"sections": sections, **program.json}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
