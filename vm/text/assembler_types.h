// The part of the assembler that reads types, signatures and formulas; the grammar is that of Type::ToString and
// DimCode::ToString. It reads from the assembler's cursor, which keeps the first error.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/program/program.h"
#include "vm/text/text_cursor.h"

namespace ingot::vm {

class TypeParser {
 public:
  explicit TypeParser(TextCursor& in) : in_(in) {}

  Signature ParseSignature();
  // Dims are formulas over these names; `usual` is the storage of a tensor that states none.
  Type ParseType(std::span<const std::string> names, Storage usual, int depth);
  DataType ParseDataType();
  // Text up to one of `stops` as a formula.
  DimCode ParseDim(std::string_view stops, std::span<const std::string> names);
  DimCode ToDim(size_t at, std::string_view text, std::span<const std::string> names);
  std::vector<DimCode> ParseDimList(std::span<const std::string> names);

 private:
  std::vector<NamedType> ParseNamedTypes(std::span<const std::string> names, Storage usual);
  std::vector<Type> ParseTypes(std::span<const std::string> names, int depth);
  std::vector<vm::Dim> ParseTypeDims(std::span<const std::string> names);

  TextCursor& in_;
};

}  // namespace ingot::vm
