// Primitives keep the meaning of a function: random legal traces on the functions of functions.h. Each result is run in
// the interpreter, scheduled and lowered, and compiled to machine code, and compared with the unscheduled function; its
// trace is replayed and gives the same function. A refusal changes nothing and is no failure. The test counts and
// prints how often each primitive was applied.
//
// 90 traces by default; INGOT_LONG_TESTS=1 makes them 1,000, of which each primitive must be in 50 places at least.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/script/printer.h"
#include "compiler/transform/tensor/lowered.h"
#include "doctest/doctest.h"
#include "tests/compiler/codegen/jit.h"
#include "tests/compiler/schedule/functions.h"
#include "tests/compiler/schedule/narrowed.h"

namespace ingot::schedule {
namespace {

using testing::Case;

// A small micro-kernel: 2 x 4 results.
constexpr const char* kSmallGemm = "gemm_f32_2x4_v4";
std::vector<TensorIntrin> Intrinsics() { return {GemmMicroKernel(2, 4, 4, false)}; }

class RandomPrimitives {
 public:
  explicit RandomPrimitives(uint64_t seed) : generator_(seed) {}

  // Applies one random primitive to random places.
  void Apply(Schedule& s) {
    const std::vector<BlockSite> sites = s.state().Blocks();
    if (sites.empty()) return;  // partition_by_conditions leaves nothing of loops over nothing
    const BlockRV block = s.GetBlock(Pick(sites).block().name);
    const BlockRV other = s.GetBlock(Pick(sites).block().name);
    const LoopRVs loops = s.GetLoops(block), other_loops = s.GetLoops(other);
    if (!s.status().ok() || loops.empty()) return;
    const LoopRV loop = Pick(loops);
    if (Below(4) == 0) s.GetProducers(block);
    if (Below(4) == 0) s.GetChildBlocks(loop);
    const LoopRV target = other_loops.empty() ? LoopRV{} : Pick(other_loops);
    const size_t first = Below(loops.size());
    const int64_t factor = 1 + static_cast<int64_t>(Below(5));
    switch (Below(34)) {
      case 0:
        return SplitSomehow(s, loop, factor);
      case 1: {
        const IntRVs tile = s.SamplePerfectTile(loop, 2, 1 + static_cast<int64_t>(Below(8)));
        if (s.status().ok()) s.Split(loop, {tile[0], tile[1]});
        return;
      }
      case 2:
        s.Fuse({loops.begin() + static_cast<std::ptrdiff_t>(first), loops.end()});
        return;
      case 3: {
        std::vector<LoopRV> order(loops.begin(), loops.end());
        std::shuffle(order.begin(), order.end(), generator_);
        order.resize(1 + Below(order.size()));
        return s.Reorder(order);
      }
      case 4:
        s.LoopPartition(loop, factor);
        return;
      case 26:
        return CutSomewhere(s, loop, factor);
      case 27:
        return FuseSomehow(s, block);
      case 28: {
        const char* const scope = Below(2) == 0 ? "shared" : "local";
        Below(2) == 0 ? s.ReadAt(loop, block, static_cast<int64_t>(Below(2)), scope) : s.WriteAt(loop, block, 0, scope);
        return;
      }
      case 29:
      case 30:
        s.Reindex(block, static_cast<int64_t>(Below(2)), Below(3) == 0 ? "write" : "read");
        return;
      case 31:
        s.CacheIndex(block, "global", static_cast<int64_t>(Below(2)));
        return;
      case 32:
      case 33:
        s.Blockize(loop);
        return;
      case 5:
        return s.Parallel(loop);
      case 6:
        return s.Vectorize(loops.back());
      case 7:
        return s.Unroll(loop);
      case 8:
      case 9:
        return target.id < 0 ? void() : s.ComputeAt(block, target);
      case 10:
      case 24:
        return UnderProducer(s, block);
      case 11:
        return s.ComputeInline(block);
      case 12:
        return s.ReverseComputeInline(block);
      case 13: {
        const std::string scope = Below(2) == 0 ? "global" : "local";
        s.CacheRead(block, 0, scope, Below(4) == 0 ? std::vector{other} : std::vector<BlockRV>{});
        return;
      }
      case 14:
        s.CacheWrite(block, 0, "global");
        return;
      case 15:
        s.DecomposeReduction(block, loop);
        return;
      case 16:
        return LayOut(s, block);
      case 17:
      case 23:
      case 25:
        return RFactorSomewhere(s);
      case 18:
        s.RecomputeFor(block, other);
        return;
      case 19:
        s.PartitionByConditions(loop);
        return;
      case 20:
        s.AddUnitLoop(block);
        return;
      case 21:
        return Below(2) == 0 ? s.SetScope(block, 0, Below(2) == 0 ? "local" : "global")
                             : s.StorageAlign(block, 0, -2, 8, static_cast<int64_t>(Below(8)));
      default:
        return Below(2) == 0 ? s.Annotate(block, "note", factor) : s.Annotate(loop, "note", "text");
    }
  }

  // Pads the product and tensorizes tiles of it with the small micro-kernel. Works only before all other primitives.
  void PadAndTensorize(Schedule& s) {
    const BlockRV block = s.GetBlock("matmul");
    const size_t rank = s.GetLoops(block).size();
    if (!s.status().ok() || rank < 3) return;
    std::vector<int64_t> multiples(rank, 1);
    multiples[rank - 3] = 2 + 2 * static_cast<int64_t>(Below(2));
    multiples[rank - 2] = 4;
    multiples[rank - 1] = 1 + static_cast<int64_t>(Below(3));
    if (Below(4) == 0) multiples[rank - 2] = 16;  // whole panels
    Schedule padded = s;
    padded.PadEinsum(block, multiples);
    if (padded.status().ok()) s = std::move(padded);
    if (Below(4) == 0) return;  // the rest at random
    const LoopRVs loops = s.GetLoops(block);
    const Schedule::Tiled tiled = s.Tile(loops[rank - 3], loops[rank - 2], int64_t{2}, int64_t{4});
    s.DecomposeReduction(block, s.GetLoops(block)[0]);
    s.Tensorize(tiled.x_inner, kSmallGemm);
  }

  // Gives a block fewer iteration variables, some of them cut in two before. Works only before other primitives on it.
  void FuseSomehow(Schedule& s, BlockRV block) {
    const BlockSite site = s.Block(block);
    std::vector<int64_t> iters, parts, sizes, multiples;
    const auto& vars = site.block().iter_vars;
    for (const ir::IterType type : {ir::IterType::kSpatial, ir::IterType::kReduce}) {
      std::vector<std::pair<int64_t, int64_t>> axes;
      for (size_t i = 0; i < vars.size(); ++i) {
        if (vars[i]->type != type) continue;
        const auto at = static_cast<int64_t>(i);
        const bool is_even = ir::AsConstInt(vars[i]->domain.extent).value_or(1) % 2 == 0;
        if (is_even && Below(2) == 0) {
          axes.insert(axes.end(), {{at, 2}, {at, -2}});
        } else {
          axes.emplace_back(at, 0);
        }
      }
      std::shuffle(axes.begin(), axes.end(), generator_);
      for (size_t i = 0; i < axes.size(); ++i) {
        iters.push_back(axes[i].first);
        parts.push_back(axes[i].second);
        if (i == 0 || Below(2) == 0) {
          sizes.push_back(0);
          multiples.push_back(1 + static_cast<int64_t>(Below(4)));
        }
        ++sizes.back();
      }
    }
    if (site.block().init && Below(3) != 0) return s.FuseEinsum(block, iters, parts, sizes, multiples);
    s.FuseIters(block, iters, parts, sizes);
  }

  // Binds loops to thread axes, which a CPU does not have. Applied at the end, since only the interpreter runs the
  // result.
  void BindAxes(Schedule& s) {
    for (const BlockSite& site : s.state().Blocks()) {
      Schedule attempt = s;
      const LoopRVs loops = attempt.GetLoops(attempt.GetBlock(site.block().name));
      if (loops.empty()) continue;
      constexpr const char* kAxes[] = {"blockIdx.x", "threadIdx.x", "threadIdx.y"};
      attempt.Bind(Pick(loops), kAxes[Below(3)]);
      if (attempt.status().ok()) s = std::move(attempt);
    }
  }

  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(generator_); }

 private:
  void SplitSomehow(Schedule& s, LoopRV loop, int64_t factor) {
    switch (Below(5)) {
      case 0:
        s.Split(loop, {kRest, factor, int64_t{2}});
        return;
      case 1:
        s.Split(loop, {factor, kRest});
        return;
      case 2: {  // a symbolic factor where there is a symbol
        const std::vector<ir::PrimVar> symbols = ir::FreePrimVars(s.function());
        s.Split(loop, {kRest, symbols.empty() ? Factor(factor) : Factor(ir::Max(symbols[0], ir::Int64(1)))});
        return;
      }
      case 3:
        s.Split(loop, {kRest, s.SampleCategorical({2, 3, 4, 8}, static_cast<int64_t>(Below(4)))});
        return;
      default:
        s.Split(loop, {kRest, factor});
        return;
    }
  }

  void CutSomewhere(Schedule& s, LoopRV loop, int64_t factor) {
    const std::vector<ir::PrimVar> symbols = ir::FreePrimVars(s.function());
    s.PartitionAt(loop, symbols.empty() ? Factor(factor) : Factor(ir::Int64(2 * factor) - symbols[0]));
  }

  // Gives the block's buffer another layout: dimensions reordered, one split into blocks, or two fused.
  void LayOut(Schedule& s, BlockRV block) {
    const std::vector<ir::BufferRegion>& writes = s.Block(block).block().writes;
    const size_t rank = writes.empty() ? 0 : writes[0].buffer->shape.size();
    if (rank == 0) return;
    const int64_t factor = 2 + static_cast<int64_t>(Below(4));
    const size_t cut = Below(rank), kind = Below(3);
    s.TransformLayout(block, 0, MakeIndexMap(static_cast<int64_t>(rank), [&](std::vector<ir::PrimExpr> to) {
                        if (kind == 0) std::shuffle(to.begin(), to.end(), generator_);
                        if (kind == 1) {
                          to.push_back(ir::FloorMod(to[cut], ir::Int64(factor)));
                          to[cut] = ir::FloorDiv(to[cut], ir::Int64(factor));
                        }
                        if (kind == 2 && rank > 1) {
                          const ir::PrimExpr inner = to.back();
                          to.pop_back();
                          to.back() = to.back() * writes[0].buffer->shape.back() + inner;
                        }
                        return to;
                      }));
  }

  void RFactorSomewhere(Schedule& s) {
    std::vector<std::pair<std::string, size_t>> places;  // loops that reduce
    for (const BlockSite& site : s.state().Blocks()) {
      for (size_t i = 0; i < site.loops.size(); ++i) {
        if (Binds(*site.realize, site.loops[i]->var, ir::IterType::kReduce)) places.emplace_back(site.block().name, i);
      }
    }
    if (places.empty()) return;
    const auto& [block, index] = Pick(places);
    s.RFactor(s.GetLoops(s.GetBlock(block))[index]);
  }

  // Moves the consumer under a loop of one of its producers.
  void UnderProducer(Schedule& s, BlockRV consumer) {
    const BlockRVs producers = s.GetProducers(consumer);
    if (producers.empty()) return;
    const LoopRVs loops = s.GetLoops(Pick(producers));
    if (!loops.empty()) s.ReverseComputeAt(consumer, loops[Below(std::min<size_t>(loops.size(), 2))]);
  }

  template <typename List>
  typename List::value_type Pick(const List& items) {
    return items[Below(items.size())];
  }
  std::mt19937_64 generator_;
};

// The values of the kernel's integer arguments, symbols of its buffers, with buffers of these dims.
std::vector<int64_t> SymbolValues(const ir::PrimFunc& lowered, const std::vector<std::vector<int64_t>>& dims) {
  std::vector<int64_t> values;
  for (const ir::PrimVar& symbol : codegen::KernelIntArguments(lowered)) {
    std::optional<int64_t> value;
    for (size_t i = 0; i < dims.size() && !value; ++i) {
      const auto& shape = lowered->params[i].buffer->shape;
      for (size_t d = 0; d < shape.size() && !value; ++d) {
        const auto* cast = ir::As<ir::CastNode>(shape[d]);
        if ((cast != nullptr ? cast->value : shape[d]).get() == symbol.get()) value = dims[i][d];
      }
    }
    REQUIRE_MESSAGE(value.has_value(), symbol->name);
    values.push_back(*value);
  }
  return values;
}

std::vector<std::vector<float>> RunCompiled(const ir::PrimFunc& lowered, const Target& target,
                                            const std::vector<std::vector<int64_t>>& dims, int num_outputs,
                                            uint64_t seed) {
  std::vector<codegen::testing::Tensor<float>> buffers;
  for (const std::vector<float>& values : testing::RandomBuffers(dims, num_outputs, seed)) {
    buffers.emplace_back(values.begin(), values.end());
  }
  std::vector<void*> pointers;
  for (auto& buffer : buffers) pointers.push_back(buffer.data());
  codegen::testing::Kernel kernel(lowered, target);
  REQUIRE(kernel.Run(pointers, SymbolValues(lowered, dims)) == 0);
  std::vector<std::vector<float>> results;
  for (size_t i = buffers.size() - static_cast<size_t>(num_outputs); i < buffers.size(); ++i) {
    results.emplace_back(buffers[i].begin(), buffers[i].end());
  }
  return results;
}

void CountPrimitives(const Schedule& s, std::map<std::string, int>& counts) {
  for (const std::string& name : s.trace().PrimitiveNames()) ++counts[name];
}

TEST_CASE("random legal traces keep what a function computes, interpreted and compiled") {
  const char* mode = std::getenv("INGOT_LONG_TESTS");
  const bool is_long = mode != nullptr && *mode == '1';
  const int num_traces = is_long ? 1000 : 90;
  const Target target = codegen::testing::TargetNamed("x86-64-v3");
  const bool runs = codegen::testing::HostRuns(target);
  if (!runs) MESSAGE("SKIP: this machine does not run " << target.name << "; nothing is compiled");
  const std::vector<Case> cases = testing::AllCases();
  std::map<std::string, int> counts;
  constexpr int kAttempts = 16;
  for (int seed = 0; seed < num_traces; ++seed) {
    const auto data = static_cast<uint64_t>(seed);
    Case c = cases[data % cases.size()];
    // One round in three counts in int32.
    if (data / cases.size() % 3 == 1) c.function = testing::Narrowed(c.function);
    RandomPrimitives random(static_cast<uint64_t>(seed));
    Schedule schedule = Schedule::Create(c.function, Intrinsics()).value();
    const auto attempt = [&](const auto& change) {
      Schedule changed = schedule;
      change(changed);
      if (changed.status().ok()) schedule = std::move(changed);
    };
    if (random.Below(8) == 0) {
      for (const BlockSite& site : schedule.state().Blocks()) {
        attempt([&](Schedule& s) { random.FuseSomehow(s, s.GetBlock(site.block().name)); });
      }
    } else if (random.Below(8) != 0) {
      attempt([&](Schedule& s) { random.PadAndTensorize(s); });
    }
    for (int i = 0; i < kAttempts; ++i) attempt([&](Schedule& s) { random.Apply(s); });
    CAPTURE(seed);
    CAPTURE(c.name);
    CAPTURE(schedule.trace().ToString());
    const std::string text = script::PrintFunction("f", schedule.function());
    CAPTURE(text);
    const auto& dims = c.shapes[static_cast<size_t>(seed) / cases.size() % c.shapes.size()];
    const auto expected = testing::RunOnRandom(c.function, dims, c.num_outputs, data, false);
    REQUIRE(expected.ok());
    const auto got = testing::RunOnRandom(schedule.function(), dims, c.num_outputs, data, false);
    REQUIRE_MESSAGE(got.ok(), got.status().message());
    REQUIRE(testing::Compare(*expected, *got) == "");
    // A local buffer may be too large or of symbolic size: then the lowering makes it workspace, or says why not.
    const Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(schedule.function(), target);
    REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
    const std::string lowered_text = script::PrintFunction("f", *lowered);
    CAPTURE(lowered_text);
    const auto ran = testing::RunOnRandom(*lowered, dims, c.num_outputs, data, true);
    REQUIRE_MESSAGE(ran.ok(), ran.status().message());
    REQUIRE(testing::Compare(*expected, *ran) == "");
    if (runs) {
      const auto compiled = RunCompiled(*lowered, target, dims, c.num_outputs, data);
      REQUIRE(testing::Compare(*expected, compiled) == "");
    }
    // Thread axes run one after the other, and their races are found.
    Schedule bound = schedule;
    random.BindAxes(bound);
    const auto sequential = testing::RunOnRandom(bound.function(), dims, c.num_outputs, data, false);
    REQUIRE_MESSAGE(sequential.ok(), sequential.status().message());
    REQUIRE(testing::Compare(*expected, *sequential) == "");
    // The trace alone makes the same function again.
    const Result<Schedule> replayed = Replay(bound.trace(), c.function, Intrinsics());
    REQUIRE_MESSAGE(replayed.ok(), replayed.status().message());
    REQUIRE(ir::StructuralEqual(ir::Expr(replayed->function()), ir::Expr(bound.function()), true));
    CountPrimitives(bound, counts);
  }
  std::string table;
  for (const std::string_view name : PrimitiveNames()) {
    const int count = counts[std::string(name)];
    table += "\n  " + std::string(name) + " " + std::to_string(count);
    CAPTURE(name);
    CHECK(count >= (is_long ? 50 : 1));
  }
  MESSAGE(num_traces << " traces on " << cases.size() << " functions; times applied:" << table);
}

}  // namespace
}  // namespace ingot::schedule
