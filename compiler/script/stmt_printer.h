// StmtPrinter: prints tensor functions and statements, line by line. A statement with a body (let, assert, allocate,
// attribute) is a flat line if its body is the rest of the suite, and a `with` if the body ends earlier.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/script/prim_printer.h"

namespace ingot::script {

// Collects lines with Python's indentation.
class TextLines {
 public:
  explicit TextLines(int indent = 0) : indent_(indent) {}
  void Add(std::string_view line) { text_.append(static_cast<size_t>(indent_) * 4, ' ').append(line) += '\n'; }
  void AddBlank() { text_ += '\n'; }
  // Appends text that is indented already.
  void Append(std::string_view text) { text_ += text; }
  int indent() const { return indent_; }
  std::string Take() { return std::move(text_); }

  class Indent {
   public:
    explicit Indent(TextLines& lines) : lines_(lines) { ++lines_.indent_; }
    ~Indent() { --lines_.indent_; }
    Indent(const Indent&) = delete;
    Indent& operator=(const Indent&) = delete;

   private:
    TextLines& lines_;
  };

 private:
  std::string text_;
  int indent_;
};

class StmtPrinter : public PrimPrinter {
 public:
  explicit StmtPrinter(int indent = 0) : PrimPrinter(Dialect::kTensor), lines_(indent) {}
  // Prints the function with decorator and def line.
  void Function(std::string_view name, const ir::PrimFuncNode& function);
  void Suite(const ir::Stmt& stmt);
  std::string Take() { return lines_.Take(); }

 private:
  void Stmts(const std::vector<ir::Stmt>& stmts, size_t first);
  // Prints a statement; is_last: it is the last one of its suite.
  void Statement(const ir::Stmt& stmt, bool is_last);
  // Prints `with HEAD as NAME:` or a flat line, then the body.
  void Scoped(const std::string& flat, const std::string& with, const ir::Stmt& body, bool is_last,
              const ir::Buffer& defined = nullptr);
  void Loop(const ir::ForNode& loop);
  void LoopHeader(const ir::ForNode& loop, const std::string& name);
  void Realize(const ir::BlockRealizeNode& realize);
  void IterVars(const ir::BlockRealizeNode& realize);
  void AllocBuffers(const ir::BlockNode& block);
  void LetStatement(const ir::LetStmtNode& let, bool is_last);
  void Assert(const ir::AssertStmtNode& node, bool is_last);
  void Allocate(const ir::AllocateNode& node, bool is_last);
  void Attribute(const ir::AttrStmtNode& node, bool is_last);
  std::string Regions(const std::vector<ir::BufferRegion>& regions);
  std::string DefineBuffer(const ir::Buffer& buffer);
  // Prints the views of the buffer's memory, behind its definition.
  void Views(const ir::Buffer& buffer);

  TextLines lines_;
  std::unordered_map<const ir::Node*, std::vector<ir::Buffer>> views_;  // by the data variable
  // The enclosing loops: an iteration variable of a block that covers a whole loop joins T.axis.remap.
  std::vector<const ir::ForNode*> loops_;
};

}  // namespace ingot::script
