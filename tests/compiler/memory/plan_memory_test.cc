#include "compiler/memory/plan_memory.h"

#include <doctest/doctest.h>

#include <random>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/visitor.h"

namespace ingot::memory {
namespace {

using namespace ir;  // NOLINT

int64_t Evaluate(const PrimExpr& expr, const PrimVarMap& values) {
  arith::Analyzer analyzer;
  const PrimExpr value = analyzer.Simplify(Substitute(expr, values));
  REQUIRE(AsConstInt(value));
  return *AsConstInt(value);
}

// Tensors that are alive together must not overlap, and all must lie below the peak.
void CheckPlacement(const std::vector<PlannedTensor>& tensors, const Placement& placement, const PrimVarMap& values) {
  const int64_t peak = Evaluate(placement.peak, values);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t begin = Evaluate(placement.offsets[i], values);
    const int64_t end = begin + Evaluate(tensors[i].size_bytes, values);
    CHECK(begin % 64 == 0);
    CHECK(end <= peak);
    for (size_t j = 0; j < i; ++j) {
      if (tensors[j].last < tensors[i].first || tensors[i].last < tensors[j].first) continue;
      const int64_t other = Evaluate(placement.offsets[j], values);
      const bool apart = end <= other || other + Evaluate(tensors[j].size_bytes, values) <= begin;
      CHECK(apart);
    }
  }
}

TEST_CASE("random tensors of constant size never overlap while both are alive") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<PlannedTensor> tensors;
    for (int i = 0; i < 30; ++i) {
      const int64_t first = static_cast<int64_t>(random() % 40);
      tensors.push_back(
          {Int64(64 * static_cast<int64_t>(1 + random() % 50)), first, first + static_cast<int64_t>(random() % 10)});
    }
    CheckPlacement(tensors, PlaceTensors(tensors), {});
  }
}

TEST_CASE("tensors of symbolic size share memory when their sizes compare, for every value") {
  const PrimVar n = MakePrimVar("n");
  std::mt19937 random(8);
  for (int round = 0; round < 10; ++round) {
    std::vector<PlannedTensor> tensors;
    for (int i = 0; i < 12; ++i) {
      const int64_t first = static_cast<int64_t>(random() % 12);
      const PrimExpr size =
          random() % 3 == 0 ? Int64(640) : PrimExpr(n) * (64 * static_cast<int64_t>(1 + random() % 9));
      tensors.push_back({size, first, first + static_cast<int64_t>(random() % 4)});
    }
    const Placement placement = PlaceTensors(tensors);
    for (int64_t value : {0, 1, 2, 7, 1000}) CheckPlacement(tensors, placement, {{n, Int64(value)}});
  }
}

TEST_CASE("a chain of equal tensors needs the room of two") {
  const PrimVar n = MakePrimVar("n");
  std::vector<PlannedTensor> tensors;
  for (int i = 0; i < 10; ++i) tensors.push_back({PrimExpr(n) * 256, i, i + 1});
  arith::Analyzer analyzer;
  CHECK(analyzer.ProveEqual(PlaceTensors(tensors).peak, PrimExpr(n) * 512));
}

TEST_CASE("what no formula of the file can place is left out, and the rest has its places") {
  std::vector<PlannedTensor> tensors;
  PrimVarMap values;
  for (int i = 0; i < 100; ++i) {  // a sum of 100 symbols is no formula of 64 steps
    const PrimVar n = MakePrimVar("n" + std::to_string(i));
    tensors.push_back({PrimExpr(n) * 64, 0, 1});
    values.emplace(n, Int64(i % 7));
  }
  const Placement placement = PlaceTensors(tensors);
  std::vector<PlannedTensor> placed;
  Placement of_placed{{}, placement.peak};
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!placement.offsets[i]) continue;
    placed.push_back(tensors[i]);
    of_placed.offsets.push_back(placement.offsets[i]);
    CHECK(codegen::LowerToDimCode(placement.offsets[i], FreePrimVars(placement.offsets[i])).ok());
  }
  CHECK(placed.size() > 10);
  CHECK(placed.size() < tensors.size());
  CHECK(codegen::LowerToDimCode(placement.peak, FreePrimVars(placement.peak)).ok());
  CheckPlacement(placed, of_placed, values);
}

TEST_CASE("very many symbolic tensors that are alive together never overlap") {
  const PrimVar n = MakePrimVar("n");
  std::mt19937 random(9);
  std::vector<PlannedTensor> tensors;
  for (int i = 0; i < 600; ++i) {
    const int64_t first = static_cast<int64_t>(random() % 300);
    tensors.push_back(
        MakePlanned({n, Int64(static_cast<int64_t>(1 + random() % 9))}, DataType::Float(32), {}, first, first + 300));
  }
  const Placement placement = PlaceTensors(tensors);
  for (int64_t value : {0, 1, 17, 1000}) CheckPlacement(tensors, placement, {{n, Int64(value)}});
}

TEST_CASE("the bytes of bounded symbols are those of their upper bounds") {
  const PrimVar n = MakePrimVar("n"), m = MakePrimVar("m");
  const Attrs bounds = {{"tir_var_upper_bound", AttrDict{{"n", int64_t{10}}}}};
  CHECK(*AsConstInt(AlignedSizeBytes({n, Int64(10)}, DataType::Float(32), bounds)) == 448);
  CHECK(*AsConstInt(AlignedSizeBytes({PrimExpr(n) + 6}, DataType::Float(32), bounds)) == 64);
  CHECK(!AsConstInt(AlignedSizeBytes({n, m}, DataType::Float(32), bounds)));
}

TEST_CASE("sizes are rounded up so that sums of them stay multiples of 64") {
  const PrimVar n = MakePrimVar("n"), m = MakePrimVar("m");
  arith::Analyzer analyzer;
  CHECK(*AsConstInt(AlignedSizeBytes({Int64(10)}, DataType::Float(32))) == 64);
  CHECK(*AsConstInt(AlignedSizeBytes({}, DataType::Float(32))) == 64);
  CHECK(*AsConstInt(AlignedSizeBytes({Int64(3)}, DataType::Int(4))) == 64);
  CHECK(analyzer.ProveEqual(AlignedSizeBytes({n, Int64(16)}, DataType::Float(32)), PrimExpr(n) * 64));
  CHECK(analyzer.ProveEqual(AlignedSizeBytes({n, Int64(1000)}, DataType::Float(32)), PrimExpr(n) * 4032));
  // Where rounding each row would take far more, the whole size is rounded up.
  for (const int64_t value : {0, 1, 16, 17, 1000}) {
    const PrimVarMap values{{n, Int64(value)}, {m, Int64(3)}};
    CHECK(Evaluate(AlignedSizeBytes({n}, DataType::Float(32)), values) == (value * 4 + 63) / 64 * 64);
    CHECK(Evaluate(AlignedSizeBytes({n, Int64(17)}, DataType::Float(32)), values) == (value * 68 + 63) / 64 * 64);
    CHECK(Evaluate(AlignedSizeBytes({n, m}, DataType::Float(32)), values) == (value * 12 + 63) / 64 * 64);
  }
}

TEST_CASE("tensors of a few bytes an element take little more than they hold, and share as larger ones do") {
  const PrimVar n = MakePrimVar("n");
  const auto tensor = [&](int64_t columns, int64_t first, int64_t last) {
    return MakePlanned({n, Int64(columns)}, DataType::Float(32), {}, first, last);
  };
  // The largest two that are alive at the same time decide the peak.
  const std::vector<PlannedTensor> chain{tensor(1, 0, 1), tensor(3, 1, 2), tensor(1, 2, 3), tensor(2, 3, 4)};
  const Placement placement = PlaceTensors(chain);
  for (const int64_t value : {0, 1, 2, 5, 16, 33, 1000}) {
    CheckPlacement(chain, placement, {{n, Int64(value)}});
  }
  CHECK(Evaluate(placement.peak, {{n, Int64(1000)}}) == 12'032 + 4'032);
  std::mt19937 random(9);
  for (int round = 0; round < 10; ++round) {
    std::vector<PlannedTensor> tensors;
    for (int i = 0; i < 12; ++i) {
      const int64_t first = static_cast<int64_t>(random() % 12);
      tensors.push_back(
          tensor(static_cast<int64_t>(1 + random() % 40), first, first + static_cast<int64_t>(random() % 4)));
    }
    const Placement found = PlaceTensors(tensors);
    for (const int64_t value : {0, 1, 2, 7, 1000}) CheckPlacement(tensors, found, {{n, Int64(value)}});
  }
}

}  // namespace
}  // namespace ingot::memory
