// TypeReader: reads the syntax of graph types (R.Tensor((n, 3), dtype="float32"), R.Tuple(...), ...) to types.
#pragma once

#include "compiler/ir/type.h"
#include "compiler/script/prim_reader.h"

namespace ingot::script {

class TypeReader {
 public:
  explicit TypeReader(PrimReader& prim) : prim_(prim), context_(prim.context()) {}
  // Returns null after a report.
  ir::Type Read(const Syntax& syntax);

 private:
  ir::Type ReadTensor(const Syntax& call);
  ir::Type ReadShape(const Syntax& call);
  ir::Type ReadPrim(const Syntax& call);
  ir::Type ReadTuple(const Syntax& call);
  ir::Type ReadCallable(const Syntax& call);
  std::optional<int> ReadRank(const Syntax& syntax);

  PrimReader& prim_;
  ReadContext& context_;
};

}  // namespace ingot::script
