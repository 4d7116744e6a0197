// Cases of the operators with dynamic output shapes: the data decide how many elements the results have.
#include "compiler/op/reference.h"
#include "tests/compiler/op/case_builder.h"

namespace ingot::op {
namespace {

ir::Expr Flag(bool value) { return ir::Make<ir::PrimValueNode>(ir::BoolImm(value)); }

// unique's arguments after the tensor.
Arguments Options(bool sorted, bool index, bool inverse, bool counts, const IntList& axis = {}) {
  std::vector<ir::Expr> args = {Flag(sorted), Flag(index), Flag(inverse), Flag(counts)};
  for (int64_t a : axis) args.push_back(ir::Make<ir::PrimValueNode>(ir::Int64(a)));
  return Then(std::move(args));
}

void NonzeroCases(CaseBuilder& b) {
  for (DataType dtype : FindOp("nonzero")->cases.dtypes) {
    ReferenceTensor x = Data(dtype, {3, 4});
    for (int64_t i = 0; i < 12; i += 3) SetNumber(x, i, 0);
    b.Add("nonzero", dtype.ToString(), {x});
  }
  b.Add("nonzero", "rank0", {Of(kF32, {}, {2})});
  b.Add("nonzero", "rank0_zero", {Of(kF32, {}, {0})});
  b.Add("nonzero", "rank1", {Of(kF32, {5}, {0, 1, 0, -2, 3})});
  b.Add("nonzero", "rank3", {Of(kI32, {2, 2, 3}, {0, 1, 0, 0, 0, 0, 4, 5, 6, 0, 0, 7})});
  b.Add("nonzero", "none", {Of(kF32, {2, 2}, {0, 0, 0, 0})});
  b.Add("nonzero", "empty", {Data(kF32, {0, 3})});
  b.Add("nonzero", "specials", {Specials()});
}

void UniqueCases(CaseBuilder& b) {
  const std::vector<double> values = {3, 1, 2, 1, 3, 3, 0, 1};
  for (DataType dtype : FindOp("unique")->cases.dtypes) {
    b.Add("unique", dtype.ToString(), {Of(dtype, {2, 4}, values)}, {}, Options(true, true, true, true));
  }
  const ReferenceTensor x = Of(kF32, {2, 4}, values);
  b.Add("unique", "values_alone", {x}, {}, Options(true, false, false, false));
  b.Add("unique", "by_first_place", {x}, {}, Options(false, true, true, true));
  b.Add("unique", "counts_alone", {x}, {}, Options(false, false, false, true));
  const ReferenceTensor rows = Of(kI32, {4, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4, 1, 0, -1});
  b.Add("unique", "rows", {rows}, {}, Options(true, true, true, true, {0}));
  b.Add("unique", "rows_by_first_place", {rows}, {}, Options(false, true, true, true, {0}));
  const ReferenceTensor cube = Of(kF32, {2, 3, 2}, {1, 2, 1, 2, 0, 2, 3, 4, 3, 4, 3, 4});
  b.Add("unique", "middle_axis", {cube}, {}, Options(true, true, true, true, {1}));
  b.Add("unique", "last_axis", {cube}, {}, Options(false, false, true, false, {-1}));
  b.Add("unique", "rank0", {Of(kF32, {}, {2})}, {}, Options(true, true, true, true));
  b.Add("unique", "empty", {Data(kF32, {0})}, {}, Options(false, true, true, true));
  b.Add("unique", "no_rows", {Data(kF32, {0, 3})}, {}, Options(true, true, true, true, {0}));
  b.Add("unique", "specials", {Of(kF32, {7}, {kNan, kInf, 0.0, kNan, -kInf, -0.0, kInf})}, {},
        Options(true, true, true, true));
}

void BoxCases(CaseBuilder& b) {
  const char* op = "vision.all_class_non_max_suppression";
  const IntList box_dims = {1, 6, 4};
  const std::vector<double> boxes = {0, 0,    1, 1,    0, 0.125, 1, 1.125, 0, -0.125, 1, 0.875,
                                     0, 10.0, 1, 11.0, 0, 10.25, 1, 11.25, 0, 100.0,  1, 101.0};
  const std::vector<double> scores = {0.875, 0.75, 0.625, 0.9375, 0.5, 0.25};
  const auto limits = [](double most, double iou, double least) {
    return std::vector<ReferenceTensor>{Of(kI64, {1}, {most}), Of(kF32, {1}, {iou}), Of(kF32, {1}, {least})};
  };
  const auto add = [&](const char* label, ReferenceTensor box, ReferenceTensor score,
                       std::vector<ReferenceTensor> more) {
    more.insert(more.begin(), {std::move(box), std::move(score)});
    b.Add(op, label, std::move(more));
  };
  for (DataType dtype : FindOp(op)->cases.dtypes) {
    add(dtype.ToString().c_str(), Of(dtype, box_dims, boxes), Of(dtype, {1, 1, 6}, scores), limits(3, 0.5, 0));
  }
  const ReferenceTensor score = Of(kF32, {1, 1, 6}, scores);
  const ReferenceTensor box = Of(kF32, box_dims, boxes);
  add("limited", box, score, limits(2, 0.5, 0));
  add("by_score", box, score, limits(10, 0.5, 0.625));
  add("no_limit_given", box, score, limits(0, 0.5, 0));
  add("everything", box, score, limits(10, 1, -kInf));
  const ReferenceTensor infinite = Of(kF32, {1, 1, 6}, {0.5, -kInf, -kInf, 1, kInf, -kInf});
  add("by_minus_infinity", box, infinite, limits(10, 0.5, -kInf));
  add("without_a_threshold", box, infinite, {Of(kI64, {1}, {10}), Of(kF32, {1}, {0.5}), Of(kF32, {0}, {})});
  add("equal_scores", box, Of(kF32, {1, 1, 6}, {1, 1, 1, 1, 1, 1}), limits(10, 0.5, 0));
  ReferenceTensor turned = box;  // the other two corners
  for (size_t i = 0; i < 6; ++i) std::swap(turned.floats[i * 4], turned.floats[i * 4 + 2]);
  add("turned_corners", turned, score, limits(10, 0.5, 0));
  std::vector<double> twice = boxes, many = scores;
  twice.insert(twice.end(), boxes.rbegin(), boxes.rend());
  for (int i = 0; i < 3; ++i) many.insert(many.end(), scores.begin(), scores.end());
  add("classes_and_batches", Of(kF32, {2, 6, 4}, twice), Of(kF32, {2, 2, 6}, many), limits(2, 0.5, 0.3));
  add("empty", Data(kF32, {1, 0, 4}), Data(kF32, {1, 2, 0}), limits(3, 0.5, 0));
}

}  // namespace

void DynamicShapeCases(CaseBuilder& b) {
  NonzeroCases(b);
  UniqueCases(b);
  BoxCases(b);
}

}  // namespace ingot::op
