// The syntax tree of the Python subset that TVMScript uses: expressions and statements with their places; names are not
// resolved. The readers turn it into IR.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/script/diagnostics.h"

namespace ingot::script {

enum class SyntaxKind : uint8_t {
  kError,        // reported already
  kName,         // text
  kInt,          // text: the digits
  kFloat,        // text
  kString,       // value
  kAttribute,    // children[0].text
  kCall,         // children[0](children[1], ...); keywords are kKeyword children, last
  kKeyword,      // text=children[0]
  kSubscript,    // children[0][children[1], ...]
  kSlice,        // children: start, stop, step; null where left out
  kTuple,        // children
  kList,         // children
  kDict,         // children: key, value, key, value, ...
  kUnary,        // text: "-", "+", "~", "not"
  kBinary,       // children[0] text children[1]; comparisons, "and" and "or" too
  kConditional,  // children[0] if children[1] else children[2]
};
struct Syntax;
using SyntaxPtr = std::unique_ptr<Syntax>;
struct Syntax {
  SyntaxKind kind;
  Place place;            // of the whole expression, or of its first line
  std::string_view text;  // as in the source
  std::string value;      // the contents of a kString
  std::vector<SyntaxPtr> children;
  int depth = 1;               // nesting depth of the tree, this node included
  bool parenthesized = false;  // a kTuple written "(a, b)" and not "a, b"

  Syntax(SyntaxKind k, Place p, std::string_view t = "") : kind(k), place(p), text(t) {}
  bool is_name(std::string_view name) const { return kind == SyntaxKind::kName && text == name; }
  const Syntax& operator[](size_t i) const { return *children[i]; }
};

enum class StatementKind : uint8_t {
  kError,       // reported already
  kExpression,  // value
  kAssign,      // target = value; with an annotation when there is one (target: annotation [= value])
  kFor,         // for target in value: body
  kWhile,       // while value: body
  kIf,          // if value: body else: orelse
  kWith,        // with value [as target]: body
  kAssert,      // assert value, message
  kReturn,      // return value
  kPass,
  kPragma,    // text
  kFunction,  // @decorators def text(params) -> annotation: body
  kClass,     // @decorators class text: body
  kImport,
};
struct Parameter {
  std::string_view name;
  Place place;
  SyntaxPtr annotation;  // may be null
};
struct Statement {
  StatementKind kind;
  Place place;
  std::string_view text;
  std::string_view comment;  // trailing
  SyntaxPtr target, annotation, value, message;
  std::vector<SyntaxPtr> decorators;
  std::vector<Parameter> params;
  std::vector<Statement> body, orelse;

  Statement(StatementKind k, Place p) : kind(k), place(p) {}
};

}  // namespace ingot::script
