// Counts the nodes of formulas, and finds the dims in a type.
#include "compiler/op/dim_size.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/ir/visitor.h"

namespace ingot::op {
namespace {

class DimCounter : public ir::PrimVisitor {
 public:
  explicit DimCounter(int limit) : limit_(limit) {}
  void VisitPrim(const ir::PrimExpr& expr) override {
    if (++count_ <= limit_) PrimVisitor::VisitPrim(expr);
  }
  bool is_over() const { return count_ > limit_; }

 private:
  const int limit_;
  int count_ = 0;
};

bool HasLongDim(const std::vector<ir::PrimExpr>& dims) {
  return std::ranges::any_of(dims, [](const ir::PrimExpr& dim) { return IsLongerThan(dim, kMaxDimNodes); });
}

bool HasLongDim(const ir::Type& type) {
  if (const auto* tensor = ir::As<ir::TensorTypeNode>(type)) return tensor->dims && HasLongDim(*tensor->dims);
  if (const auto* shape = ir::As<ir::ShapeTypeNode>(type)) return shape->dims && HasLongDim(*shape->dims);
  if (const auto* scalar = ir::As<ir::PrimTypeNode>(type)) {
    return scalar->value != nullptr && IsLongerThan(scalar->value, kMaxDimNodes);
  }
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) {
    return std::ranges::any_of(tuple->fields, [](const ir::Type& field) { return HasLongDim(field); });
  }
  return false;
}

}  // namespace

bool IsLongerThan(const ir::PrimExpr& formula, int limit) {
  DimCounter counter(limit);
  counter.VisitPrim(formula);
  return counter.is_over();
}

Status CheckDimSizes(const ir::Type& type) {
  if (!HasLongDim(type)) return Status();
  return Status(StatusCode::kBadInput,
                "the formula of a dim has more than " + std::to_string(kMaxDimNodes) + " symbols and operations");
}

}  // namespace ingot::op
