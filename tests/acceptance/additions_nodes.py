"""What a new kind of IR node takes: a scalar expression is added to a copy of the compiler by its struct with its list of
fields, its row in nodes.def, how it is built again, and the switches that the compiler names. Then visitors, mutators,
structural equality and hash, substitution, free variables and fresh copies know it; and leaving out a part does not
compile.

usage: additions_nodes.py
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IR = "compiler/ir"
STRUCT = """
// base to the power of a whole number.
struct PowerNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kPower;
  INGOT_NODE_MEMBERS(PowerNode);
  PrimExpr base;
  int exponent;
  PowerNode(PrimExpr b, int e) : PrimExprNode(kKind, b->dtype), base(std::move(b)), exponent(e) {}
  static constexpr void Fields(auto&& walk) { walk(&PowerNode::base, &PowerNode::exponent); }
};

"""
ROW = "INGOT_PRIM_NODE(kPower, PowerNode)\n"
REBUILT = "PrimExpr RebuiltPrim(PowerNode node) { return Make<PowerNode>(std::move(node.base), node.exponent); }\n"
# Each switch over PrimKind has this case; the new kind is treated like it.
LAST_CASE = re.compile(r"^( *)case ((?:ir::)?PrimKind::)kProducerLoad:", re.M)

PROGRAM = """
#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

using namespace ingot::ir;

struct Count : StmtVisitor {
  int vars = 0, powers = 0;
  using StmtVisitor::Visit;
  void Visit(const PrimVarNode&) override { ++vars; }
  void Visit(const PowerNode& node) override {
    ++powers;
    StmtVisitor::Visit(node);
  }
};
struct Nothing : StmtMutator {};

int main() {
  const PrimVar x = MakePrimVar("x"), y = MakePrimVar("y");
  const PrimExpr power = Make<PowerNode>(x + Int64(1), 3);
  const PrimExpr wide = Make<PowerNode>(MakePrimVar("wide", ingot::DataType::Int(32)), 3);
  INGOT_CHECK(StructuralEqual(power, PrimExpr(Make<PowerNode>(x + Int64(1), 3))));
  INGOT_CHECK(!StructuralEqual(power, PrimExpr(Make<PowerNode>(x + Int64(1), 2))));
  INGOT_CHECK(!StructuralEqual(power, PrimExpr(Make<PowerNode>(y + Int64(1), 3))));
  INGOT_CHECK(StructuralHash(power) == StructuralHash(PrimExpr(Make<PowerNode>(x + Int64(1), 3))));
  INGOT_CHECK(StructuralHash(power) != StructuralHash(PrimExpr(Make<PowerNode>(x + Int64(1), 2))));
  INGOT_CHECK(FreePrimVars(power).size() == 1 && FreePrimVars(power)[0].same_as(x));
  Count count;
  count.VisitPrim(power);
  INGOT_CHECK(count.powers == 1 && count.vars == 1);
  INGOT_CHECK(Nothing().MutatePrim(power).same_as(power));
  const PrimExpr replaced = Substitute(power, {{x, y}});
  INGOT_CHECK(StructuralEqual(replaced, PrimExpr(Make<PowerNode>(y + Int64(1), 3))));
  INGOT_CHECK(As<PowerNode>(replaced) != nullptr && As<PowerNode>(replaced)->exponent == 3);
  // A loop over x, copied: the power in the copy is one of the copy's variable.
  const Stmt loop = Make<ForNode>(x, Int64(0), Int64(8), ForKind::kSerial, Make<EvaluateNode>(power));
  const Stmt copy = CopyFresh(loop);
  INGOT_CHECK(StructuralEqual(copy, loop));
  const auto* inner = As<PowerNode>(As<EvaluateNode>(As<ForNode>(copy)->body)->value);
  INGOT_CHECK(!As<ForNode>(copy)->var.same_as(x));
  INGOT_CHECK(FreePrimVars(inner->base)[0].same_as(As<ForNode>(copy)->var));
  return 0;
}
"""


def replace_once(path, before, after):
    text = path.read_text()
    assert text.count(before) == 1, (path, before)
    path.write_text(text.replace(before, after))


class AddingAScalarExpression(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.tree = Path(cls.scratch.name)
        shutil.copytree(ROOT / IR, cls.tree / IR)
        replace_once(cls.tree / IR / "prim_expr.h", "// ---- Building.", STRUCT.lstrip() + "// ---- Building.")
        rows = cls.tree / IR / "nodes.def"
        last = re.findall(r"^INGOT_PRIM_NODE\(.*\n", rows.read_text(), re.M)[-1]
        replace_once(rows, last, last + ROW)
        first = "PrimExpr RebuiltPrim(BinaryNode node)"
        replace_once(cls.tree / IR / "mutator.cc", first, REBUILT + first)
        cls.switches = []  # files of other folders with a switch over the kinds
        for file in sorted((ROOT / "compiler").rglob("*.cc")):
            text, count = LAST_CASE.subn(r"\1case \2kPower:\n\g<0>", file.read_text())
            if count:
                copy = cls.tree / file.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text)
                cls.switches.append(copy)
        cls.includes = ["-I", cls.tree, "-I", ROOT, "-I", ROOT / "vm/include"]
        if shutil.which("llvm-config-19"):
            llvm = subprocess.run(["llvm-config-19", "--includedir"], capture_output=True, text=True, check=True)
            cls.includes += ["-isystem", llvm.stdout.strip()]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def compile(self, file, *options):
        return subprocess.run(
            [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
             *self.includes, file, *(options or ["-fsyntax-only"])], capture_output=True, text=True)

    def fails_without(self, file, part, message, checked=None):
        """Without this part of a file, that file or another one that is checked fails with the message."""
        text = file.read_text()
        self.assertIn(part, text)
        file.write_text(text.replace(part, ""))
        try:
            result = self.compile(checked or file)
            self.assertNotEqual(result.returncode, 0, f"{file} without {part}")
            self.assertRegex(result.stderr, message)
        finally:
            file.write_text(text)

    def test_what_follows_from_the_list_of_fields(self):
        main = self.tree / "main.cc"
        units = sorted((self.tree / IR).glob("*.cc")) + [ROOT / "runtime" / name for name in (
            "check.cc", "data_type.cc", "status.cc", "suggest.cc", "text.cc")]
        main.write_text("".join(f'#include "{file}"\n' for file in units) + PROGRAM)
        program = self.tree / "main"
        result = self.compile(main, "-o", program, "-lxxhash")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_each_switch_is_named(self):
        self.assertGreaterEqual(len(self.switches), 4)  # printing, interpreting, code generation, tensorizing
        for file in self.switches:
            with self.subTest(file.relative_to(self.tree)):
                result = self.compile(file)
                self.assertEqual(result.returncode, 0, result.stderr)
                case = re.search(r" *case (ir::)?PrimKind::kPower:\n", file.read_text()).group()
                self.fails_without(file, case, "enumeration value .kPower. not handled in switch")

    def test_the_list_of_fields_is_needed(self):
        fields = next(line for line in STRUCT.splitlines(True) if "Fields(" in line)
        header = self.tree / IR / "prim_expr.h"
        self.fails_without(header, fields, "PowerNode", checked=self.tree / IR / "visitor.cc")

    def test_how_it_is_built_again_is_needed(self):
        self.fails_without(self.tree / IR / "mutator.cc", REBUILT,
                           "RebuiltPrim says how a scalar expression is built of new operands")


if __name__ == "__main__":
    unittest.main()
