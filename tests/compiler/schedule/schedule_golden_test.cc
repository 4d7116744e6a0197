// Golden texts of schedules (tests/golden/schedule):
//
//   # RUN: primitives COMMAND; COMMAND; ...     the module's one PrimFunc after them, and the trace
//   # RUN: default TARGET [trace|scheduled|lowered]
//
// A command is a primitive and its arguments: a block by name, a loop as BLOCK/INDEX (from the outermost, 0), "None",
// an integer, a symbolic variable, a dimension of a layout or a word: `split C/0 None 4`, `split C/0 None m`,
// `compute_at B C/1`.
#include <array>
#include <charconv>
#include <sstream>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/tensor/lowered.h"
#include "doctest/doctest.h"
#include "tests/golden.h"

namespace ingot::schedule {
namespace {

struct Named {
  std::string name;
  ir::PrimFunc function;
};
Result<Named> OnlyFunction(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, script::ParseModule(golden.input, "input.py"));
  if (module.functions().size() != 1) return Status(StatusCode::kBadInput, "expected one function");
  const std::string& name = module.functions()[0].var->name;
  return Named{name, module.FindPrimFunc(name)};
}

class Command {
 public:
  Command(Schedule& schedule, std::istringstream words) : s_(schedule), words_(std::move(words)) { words_ >> name_; }

  Status Run() {
    if (name_ == "split") {
      const LoopRV loop = Loop();
      std::vector<Factor> factors;
      for (std::string word; words_ >> word;) factors.push_back(FactorOf(word));
      s_.Split(loop, factors);
    } else if (name_ == "fuse") {
      s_.Fuse(Loops());
    } else if (name_ == "reorder") {
      s_.Reorder(Loops());
    } else if (name_ == "tile") {
      const LoopRV x = Loop(), y = Loop();
      const Factor x_factor = FactorOf(Word());
      s_.Tile(x, y, x_factor, FactorOf(Word()));
    } else if (name_ == "loop_partition") {
      const LoopRV loop = Loop();
      s_.LoopPartition(loop, Number(Word()));
    } else if (name_ == "partition_at") {
      const LoopRV loop = Loop();
      s_.PartitionAt(loop, FactorOf(Word()));
    } else if (name_ == "partition_by_conditions") {
      s_.PartitionByConditions(Loop());
    } else if (name_ == "parallel") {
      s_.Parallel(Loop());
    } else if (name_ == "vectorize") {
      s_.Vectorize(Loop());
    } else if (name_ == "unroll") {
      s_.Unroll(Loop());
    } else if (name_ == "bind") {
      const LoopRV loop = Loop();
      s_.Bind(loop, Word());
    } else if (name_ == "annotate") {
      const LoopRV loop = Loop();
      const std::string key = Word();
      s_.Annotate(loop, key, Number(Word()));
    } else if (name_ == "compute_at") {
      const BlockRV block = Block();
      s_.ComputeAt(block, Loop());
    } else if (name_ == "reverse_compute_at") {
      const BlockRV block = Block();
      s_.ReverseComputeAt(block, Loop());
    } else if (name_ == "recompute_for") {
      const BlockRV block = Block();
      s_.RecomputeFor(block, Blocks());
    } else if (name_ == "compute_inline") {
      s_.ComputeInline(Block());
    } else if (name_ == "reverse_compute_inline") {
      s_.ReverseComputeInline(Block());
    } else if (name_ == "cache_read") {
      const BlockRV block = Block();
      const int64_t index = Number(Word());
      const std::string scope = Word();
      s_.CacheRead(block, index, scope, Blocks());
    } else if (name_ == "cache_write") {
      const BlockRV block = Block();
      const int64_t index = Number(Word());
      s_.CacheWrite(block, index, Word());
    } else if (name_ == "read_at" || name_ == "write_at") {
      const LoopRV loop = Loop();
      const BlockRV block = Block();
      const int64_t index = Number(Word());
      const std::string scope = Word();
      name_ == "read_at" ? s_.ReadAt(loop, block, index, scope) : s_.WriteAt(loop, block, index, scope);
    } else if (name_ == "reindex") {
      const BlockRV block = Block();
      const int64_t index = Number(Word());
      s_.Reindex(block, index, Word());
    } else if (name_ == "cache_index") {
      const BlockRV block = Block();
      const std::string scope = Word();
      s_.CacheIndex(block, scope, Number(Word()));
    } else if (name_ == "blockize") {
      s_.Blockize(Loop());
    } else if (name_ == "set_scope") {
      const BlockRV block = Block();
      const int64_t index = Number(Word());
      s_.SetScope(block, index, Word());
    } else if (name_ == "storage_align") {
      const BlockRV block = Block();
      const std::vector<int64_t> numbers = Numbers();
      s_.StorageAlign(block, numbers.at(0), numbers.at(1), numbers.at(2), numbers.at(3));
    } else if (name_ == "pad_einsum") {
      const BlockRV block = Block();
      s_.PadEinsum(block, Numbers());
    } else if (name_ == "fuse_einsum" || name_ == "fuse_iters") {
      // Groups of iterations behind their multiples: 0,2/4 is 0 and the quotient of 2 by 4, 2%4 its remainder.
      const BlockRV block = Block();
      std::vector<int64_t> iters, parts, sizes, multiples;
      while (words_ >> std::ws && words_.good()) {
        if (name_ == "fuse_einsum") multiples.push_back(Number(Word()));
        std::stringstream group(Word());
        sizes.push_back(0);
        for (std::string axis; std::getline(group, axis, ','); ++sizes.back()) {
          const size_t sign = axis.find_first_of("/%");
          iters.push_back(Number(axis.substr(0, sign)));
          parts.push_back(sign == std::string::npos ? 0 : Number(axis.substr(sign + 1)) * (axis[sign] == '/' ? 1 : -1));
        }
      }
      if (name_ == "fuse_iters") s_.FuseIters(block, iters, parts, sizes);
      if (name_ == "fuse_einsum") s_.FuseEinsum(block, iters, parts, sizes, multiples);
    } else if (name_ == "tensorize") {
      const LoopRV loop = Loop();
      s_.Tensorize(loop, Word());
    } else if (name_ == "transform_layout") {
      const BlockRV block = Block();
      const int64_t index = Number(Word());
      s_.TransformLayout(block, index, Layout());
    } else if (name_ == "decompose_reduction") {
      const BlockRV block = Block();
      s_.DecomposeReduction(block, Loop());
    } else if (name_ == "rfactor") {
      s_.RFactor(Loop());
    } else {
      return Status(StatusCode::kInvalidArgument, "unknown command " + name_);
    }
    return s_.status();
  }

 private:
  std::string Word() {
    std::string word;
    words_ >> word;
    return word;
  }
  static int64_t Number(const std::string& text) {
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  std::vector<int64_t> Numbers() {
    std::vector<int64_t> numbers;
    for (std::string word; words_ >> word;) numbers.push_back(Number(word));
    return numbers;
  }
  Factor FactorOf(const std::string& word) const {
    if (word == "None") return kRest;
    for (const ir::PrimVar& symbol : ir::FreePrimVars(s_.function())) {
      if (symbol->name == word) return ir::PrimExpr(symbol);
    }
    return Number(word);
  }
  // A new dimension is an old one, or a quotient or remainder of it: `0 1/16 2 3 1%16` is NCHW16c of NCHW.
  IndexMap Layout() {
    std::vector<std::string> words;
    int64_t rank = 0;
    for (std::string word; words_ >> word;) {
      rank = std::max(rank, Number(word) + 1);
      words.push_back(std::move(word));
    }
    return MakeIndexMap(rank, [&](const std::vector<ir::PrimExpr>& i) {
      std::vector<ir::PrimExpr> to;
      for (const std::string& word : words) {
        const ir::PrimExpr& index = i[static_cast<size_t>(Number(word))];
        const size_t sign = word.find_first_of("/%");
        const ir::PrimExpr factor = ir::Int64(sign == std::string::npos ? 1 : Number(word.substr(sign + 1)));
        to.push_back(sign == std::string::npos ? index
                     : word[sign] == '/'       ? ir::FloorDiv(index, factor)
                                               : ir::FloorMod(index, factor));
      }
      return to;
    });
  }
  std::vector<BlockRV> Blocks() {
    std::vector<BlockRV> blocks;
    for (std::string word; words_ >> word;) blocks.push_back(s_.GetBlock(word));
    return blocks;
  }
  BlockRV Block() { return s_.GetBlock(Word()); }
  LoopRV Loop() { return LoopOf(Word()); }
  LoopRV LoopOf(const std::string& word) {
    const size_t slash = word.find('/');
    const LoopRVs loops = s_.GetLoops(s_.GetBlock(word.substr(0, slash)));
    const size_t index = slash == std::string::npos ? 0 : Number(word.substr(slash + 1));
    return index < loops.size() ? loops[index] : LoopRV{};
  }
  std::vector<LoopRV> Loops() {
    std::vector<LoopRV> loops;
    for (std::string word; words_ >> word;) loops.push_back(LoopOf(word));
    return loops;
  }

  Schedule& s_;
  std::istringstream words_;
  std::string name_;
};

Result<std::string> Primitives(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const Named named, OnlyFunction(golden));
  INGOT_ASSIGN_OR_RETURN(Schedule schedule, Schedule::Create(named.function));
  std::istringstream commands(golden.arguments);
  for (std::string command; std::getline(commands, command, ';');) {
    INGOT_RETURN_IF_ERROR(Command(schedule, std::istringstream(command)).Run());
  }
  return script::PrintFunction(named.name, schedule.function()) + "\n" + schedule.trace().ToString();
}

Result<std::string> Default(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const Named named, OnlyFunction(golden));
  std::istringstream words(golden.arguments);
  std::string target_name, form;
  words >> target_name >> form;
  INGOT_ASSIGN_OR_RETURN(const TargetFamily family, ParseTarget(target_name));
  INGOT_ASSIGN_OR_RETURN(const ScheduledFunction scheduled, ApplyDefaultSchedule(named.function, family.variants[0]));
  if (form == "trace") return scheduled.trace.ToString();
  if (form == "scheduled") return script::PrintFunction(named.name, scheduled.function);
  if (form != "lowered") return Status(StatusCode::kInvalidArgument, "expected trace, scheduled or lowered");
  INGOT_ASSIGN_OR_RETURN(const ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, family.variants[0]));
  return script::PrintFunction(named.name, lowered);
}

constexpr std::array<golden::Directive, 2> kDirectives{{{"primitives", Primitives}, {"default", Default}}};

TEST_CASE("schedule goldens") { golden::RunArea("schedule", kDirectives); }

}  // namespace
}  // namespace ingot::schedule
