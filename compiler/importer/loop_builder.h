// Builds loops of branches, scans and sequences as functions that call themselves at their end. A plan says how often
// the loop runs, what it carries, and how its body is imported; the builder finds which dims change from trip to trip.
// It owns nothing but its plan and body while it builds one loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/binding_builder.h"
#include "compiler/importer/report_builder.h"
#include "compiler/importer/sequence_builder.h"

namespace ingot::importer {

// The result of one trip, from the carried values.
struct LoopTurn {
  ir::Expr condition;  // null: the loop goes on
  std::vector<ir::Expr> carried, rows;
  bool is_imported = true;  // false: a node in it is not supported, and was reported
};

struct LoopPlan {
  std::string label;
  ir::PrimExpr trips;  // null: there is no limit, the condition alone ends the loop
  ir::Expr condition;  // null: there is no condition
  std::vector<ir::Expr> initial;
  std::vector<bool> is_read;          // per carried value: whether the body reads it; empty: it reads all
  std::vector<bool> is_row_reversed;  // per stacked value: its rows are written from the last one on
  bool keeps_shapes = false;          // a trip returns carried tensors of the shapes that it takes, or the run ends
  std::function<Result<LoopTurn>(const ir::PrimVar& i, const ir::Expr& condition, const std::vector<ir::Expr>& carried)>
      turn;
};

class LoopBuilder {
 public:
  LoopBuilder(BindingBuilder& builder, SequenceBuilder& sequences, arith::Analyzer& analyzer, ReportBuilder& report)
      : builder_(builder), sequences_(sequences), analyzer_(analyzer), report_(report) {}

  // Returns the last carried values, then the stacked ones; nothing if a node in the body is not supported.
  Result<std::vector<ir::Expr>> Build(LoopPlan plan);
  // Imports the body once for what its turn notes, and drops the result.
  Status TryBody(const LoopPlan& plan);

 private:
  // What is known of a carried value in every trip.
  struct CarriedType {
    LooseDims loose;  // for a tensor
    // Of a tensor that no trip reads, as where an exporter gives a scalar for what the first trip makes: the rank that a
    // trip gives, if it differs from the rank before the first trip.
    std::optional<int> made_rank;
    std::optional<ObjectInfo> object;  // for any other value
  };
  struct Body;
  struct Arguments;

  Result<std::vector<CarriedType>> FirstCarriedTypes(const LoopPlan& plan) const;
  Result<Body> ImportBody(const LoopPlan& plan, const std::vector<CarriedType>& types);
  // Matches the carried tensors that a trip returns with the shapes before the first trip.
  Status MatchShapes(const LoopPlan& plan, LoopTurn& turn);
  // Joins what a trip returns into the type; true if that adds anything new.
  Result<bool> Widen(const LoopPlan& plan, CarriedType& type, const ir::Expr& in, const ir::Expr& out, size_t k) const;
  Result<std::vector<ir::Expr>> Finish(const LoopPlan& plan, Body body, const std::vector<CarriedType>& types,
                                       const ir::Span& span);
  LooseDims LooseStackedDims(const LoopPlan& plan, const Body& body, const ir::TensorTypeNode& row) const;
  Result<ir::Expr> RowsSoFar(const LoopPlan& plan, const ir::PrimVar& i, const ir::Var& stacked,
                             const std::vector<ir::PrimExpr>& dims, bool is_made_here, const ir::Span& span);
  Status StackRow(const LoopPlan& plan, size_t k, Body& body, Arguments& arguments, const ir::Span& span);
  ir::Expr Call(const LoopPlan& plan, Body body, const Arguments& arguments, const ir::Span& span);

  BindingBuilder& builder_;
  SequenceBuilder& sequences_;
  arith::Analyzer& analyzer_;
  ReportBuilder& report_;
};

}  // namespace ingot::importer
