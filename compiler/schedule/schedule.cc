// The table of primitives as instructions, the handles that they make, the public methods, and replay. The primitives
// themselves are in primitives/.
#include "compiler/schedule/schedule.h"

#include <algorithm>
#include <array>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/widen_indices.h"
#include "compiler/script/printer.h"

namespace ingot::schedule {

using Entity = Schedule::Entity;

// A primitive as an instruction. name is that of the trace. parameters are the names of the arguments; "*" before the
// last name: it takes all further arguments as a list; "?" after it: void ones are left out of the list; "?+": the
// same, and at least one must be left. outputs has a letter per handle that the primitive makes (b, l or i for a block,
// loop or integer); "*" after a letter: any number of them.
struct PrimitiveRow {
  const char* name;
  std::array<const char*, 5> parameters;
  const char* outputs;
  Result<std::vector<Entity>> (*run)(Schedule& schedule, const std::vector<Entity>& arguments,
                                     std::vector<int64_t>& decision);
};

// The functions of the table's rows: they take and return what handles stand for.
struct Rows {
  using Arguments = std::vector<Entity>;
  using Outputs = Result<std::vector<Entity>>;
  using Decision = std::vector<int64_t>;

  static const BlockName& BlockAt(const Arguments& a, size_t i) { return std::get<Schedule::BlockRef>(a.at(i)).name; }
  static const LoopVar& LoopAt(const Arguments& a, size_t i) { return std::get<LoopVar>(a.at(i)); }
  static int64_t IntAt(const Arguments& a, size_t i) { return std::get<int64_t>(a.at(i)); }
  static const std::string& TextAt(const Arguments& a, size_t i) { return std::get<std::string>(a.at(i)); }
  static std::vector<LoopVar> LoopsFrom(const Arguments& a, size_t first) {
    std::vector<LoopVar> loops;
    for (size_t i = first; i < a.size(); ++i) loops.push_back(LoopAt(a, i));
    return loops;
  }
  static std::vector<BlockName> BlocksFrom(const Arguments& a, size_t first) {
    std::vector<BlockName> blocks;
    for (size_t i = first; i < a.size(); ++i) blocks.push_back(BlockAt(a, i));
    return blocks;
  }
  static Entity OfBlock(BlockName name) { return Schedule::BlockRef{std::move(name)}; }
  static Entity OfLoop(const std::optional<LoopVar>& loop) { return loop ? Entity(*loop) : Entity(Schedule::Void{}); }
  static Outputs Done(const Status& status) {
    if (!status.ok()) return status;
    return std::vector<Entity>{};
  }
  static Outputs OneBlock(Result<BlockName> name) {
    if (!name.ok()) return std::move(name).status();
    return std::vector<Entity>{OfBlock(*name)};
  }

  // The expression with its symbolic variables replaced by the function's of the same names, except those in `own`; an
  // error where the function has no such variable.
  static Result<ir::PrimExpr> OfFunction(const ir::PrimFunc& function, const ir::PrimExpr& given, const char* where,
                                         const std::vector<ir::PrimVar>& own = {}) {
    const ir::PrimExpr expr = WidenIndex(given);
    std::vector<ir::PrimVar> known = ir::FreePrimVars(function);
    for (const ir::PrimFuncParam& param : function->params) {
      if (!param.buffer) known.push_back(param.var);
    }
    ir::PrimVarMap map;
    for (const ir::PrimVar& var : ir::FreePrimVars(expr)) {
      if (std::any_of(own.begin(), own.end(), [&](const ir::PrimVar& v) { return v.same_as(var); })) continue;
      const auto it = std::find_if(known.begin(), known.end(), [&](const ir::PrimVar& v) {
        return v->name == var->name && v->dtype == var->dtype;
      });
      if (it == known.end()) {
        return Status(StatusCode::kInvalidArgument,
                      std::string(where) + ": the function has no symbolic variable " + var->name);
      }
      map.emplace(var, *it);
    }
    return ir::Substitute(expr, map);
  }

  // Whether an instruction of the trace had this block and a void handle as arguments: it was to move the block to a
  // loop that does not exist here, so the block is where it was.
  static bool WasLeftInPlace(const Schedule& s, const Entity& entity) {
    const auto* block = std::get_if<Schedule::BlockRef>(&entity);
    if (block == nullptr) return false;
    for (const Instruction& instruction : s.trace_.instructions) {
      bool has_void = false, has_block = false;
      for (const TraceValue& argument : instruction.arguments) {
        const Entity value = s.Resolve(argument);
        const auto* ref = std::get_if<Schedule::BlockRef>(&value);
        has_void |= std::holds_alternative<Schedule::Void>(value);
        has_block |= ref != nullptr && ref->name == block->name;
      }
      if (has_void && has_block) return true;
    }
    return false;
  }

  static Outputs GetBlock(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const BlockSite site, s.state_.FindBlock(TextAt(a, 0)));
    return std::vector<Entity>{OfBlock(site.block().name)};
  }
  static Outputs GetLoops(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const BlockSite site, s.state_.FindBlock(BlockAt(a, 0)));
    std::vector<Entity> loops;
    for (const For& loop : site.loops) loops.push_back(loop->var);
    return loops;
  }
  static Outputs GetChildBlocks(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const LoopSite site, s.state_.FindLoop(LoopAt(a, 0)));
    std::vector<Entity> blocks;
    for (const BlockSite& child : ScheduleState::BlocksIn(site.loop->body))
      blocks.push_back(OfBlock(child.block().name));
    return blocks;
  }
  static Outputs GetProducers(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const BlockSite site, s.state_.FindBlock(BlockAt(a, 0)));
    std::vector<Entity> blocks;
    for (const BlockSite& other : s.state_.Blocks()) {
      if (other.realize.same_as(site.realize)) continue;
      const auto& reads = site.block().reads;
      const bool produces = std::any_of(reads.begin(), reads.end(), [&](const ir::BufferRegion& read) {
        return WritesTo(other.block(), read.buffer);
      });
      if (produces) blocks.push_back(OfBlock(other.block().name));
    }
    return blocks;
  }
  static Outputs SamplePerfectTile(Schedule& s, const Arguments& a, Decision& decision) {
    INGOT_ASSIGN_OR_RETURN(const LoopSite site, s.state_.FindLoop(LoopAt(a, 0)));
    const int64_t n = IntAt(a, 1), max_innermost = IntAt(a, 2);
    const auto extent = ir::AsConstInt(site.loop->extent);
    if (!extent || n < 1 || max_innermost < 1) {
      return Refuse("sample_perfect_tile", Describe(site), "needs a constant extent, n >= 1 and a limit >= 1");
    }
    int64_t product = 1;
    bool fits = static_cast<int64_t>(decision.size()) == n && decision.back() <= max_innermost;
    for (int64_t factor : decision) {
      fits &= factor >= 1;
      if (fits) fits = !__builtin_mul_overflow(product, factor, &product);
    }
    if (!fits || product != *extent) {
      decision.assign(n, 1);
      int64_t last = n == 1 ? *extent : std::min(max_innermost, *extent);
      while (last > 1 && *extent % last != 0) --last;
      decision.back() = std::max<int64_t>(last, 1);
      if (n > 1) decision.front() = *extent / decision.back();
    }
    std::vector<Entity> factors;
    for (int64_t factor : decision) factors.push_back(factor);
    return factors;
  }
  static Outputs SampleCategorical(Schedule&, const Arguments& a, Decision& decision) {
    if (decision.size() != 1 || decision[0] < 0 || decision[0] >= static_cast<int64_t>(a.size())) decision = {0};
    if (a.empty()) return Status(StatusCode::kInvalidArgument, "sample_categorical: no candidates");
    return std::vector<Entity>{IntAt(a, decision[0])};
  }
  static Outputs Split(Schedule& s, const Arguments& a, Decision&) {
    std::vector<std::optional<ir::PrimExpr>> factors;
    for (size_t i = 1; i < a.size(); ++i) {
      if (const auto* value = std::get_if<int64_t>(&a[i])) {
        factors.push_back(ir::Int64(*value));
      } else if (const auto* symbolic = std::get_if<ir::PrimExpr>(&a[i])) {
        INGOT_ASSIGN_OR_RETURN(ir::PrimExpr factor, OfFunction(s.function(), *symbolic, "split"));
        factors.push_back(std::move(factor));
      } else {
        factors.push_back(std::nullopt);
      }
    }
    INGOT_ASSIGN_OR_RETURN(const std::vector<LoopVar> loops, schedule::Split(s.state_, LoopAt(a, 0), factors));
    return std::vector<Entity>(loops.begin(), loops.end());
  }
  static Outputs Fuse(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const LoopVar fused, schedule::Fuse(s.state_, LoopsFrom(a, 0)));
    return std::vector<Entity>{fused};
  }
  static Outputs Reorder(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::Reorder(s.state_, LoopsFrom(a, 0)));
  }
  static Outputs LoopPartition(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const LoopParts parts, schedule::LoopPartition(s.state_, LoopAt(a, 0), IntAt(a, 1)));
    return std::vector<Entity>{OfLoop(parts.main), OfLoop(parts.tail)};
  }
  static Outputs PartitionByConditions(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const auto parts, schedule::PartitionByConditions(s.state_, LoopAt(a, 0)));
    std::vector<Entity> loops;
    for (const std::optional<LoopVar>& part : parts) loops.push_back(OfLoop(part));
    return loops;
  }
  static Outputs AddUnitLoop(Schedule& s, const Arguments& a, Decision&) {
    INGOT_ASSIGN_OR_RETURN(const LoopVar loop, schedule::AddUnitLoop(s.state_, BlockAt(a, 0)));
    return std::vector<Entity>{loop};
  }
  static Outputs Parallel(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::Parallel(s.state_, LoopAt(a, 0)));
  }
  static Outputs Vectorize(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::Vectorize(s.state_, LoopAt(a, 0)));
  }
  static Outputs Unroll(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::Unroll(s.state_, LoopAt(a, 0)));
  }
  static Outputs Bind(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::Bind(s.state_, LoopAt(a, 0), TextAt(a, 1)));
  }
  static Outputs Annotate(Schedule& s, const Arguments& a, Decision&) {
    const auto* text = std::get_if<std::string>(&a[2]);
    ir::AttrValue value = text != nullptr ? ir::AttrValue(*text) : ir::AttrValue(IntAt(a, 2));
    if (std::holds_alternative<LoopVar>(a[0])) return Done(AnnotateLoop(s.state_, LoopAt(a, 0), TextAt(a, 1), value));
    return Done(AnnotateBlock(s.state_, BlockAt(a, 0), TextAt(a, 1), value));
  }
  static Outputs ComputeAt(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::ComputeAt(s.state_, BlockAt(a, 0), LoopAt(a, 1)));
  }
  static Outputs ReverseComputeAt(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::ReverseComputeAt(s.state_, BlockAt(a, 0), LoopAt(a, 1)));
  }
  static Outputs RecomputeFor(Schedule& s, const Arguments& a, Decision&) {
    return OneBlock(schedule::RecomputeFor(s.state_, BlockAt(a, 0), BlocksFrom(a, 1)));
  }
  static Outputs ComputeInline(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::ComputeInline(s.state_, BlockAt(a, 0)));
  }
  static Outputs ReverseComputeInline(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::ReverseComputeInline(s.state_, BlockAt(a, 0)));
  }
  static Outputs CacheRead(Schedule& s, const Arguments& a, Decision&) {
    return OneBlock(schedule::CacheRead(s.state_, BlockAt(a, 0), IntAt(a, 1), TextAt(a, 2), BlocksFrom(a, 3)));
  }
  static Outputs CacheWrite(Schedule& s, const Arguments& a, Decision&) {
    return OneBlock(schedule::CacheWrite(s.state_, BlockAt(a, 0), IntAt(a, 1), TextAt(a, 2)));
  }
  static Outputs SetScope(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::SetScope(s.state_, BlockAt(a, 0), IntAt(a, 1), TextAt(a, 2)));
  }
  static Outputs StorageAlign(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::StorageAlign(s.state_, BlockAt(a, 0), IntAt(a, 1), IntAt(a, 2), IntAt(a, 3), IntAt(a, 4)));
  }
  static Outputs TransformLayout(Schedule& s, const Arguments& a, Decision&) {
    IndexMap map = std::get<IndexMap>(a.at(2));
    for (ir::PrimExpr& index : map.to) {
      INGOT_ASSIGN_OR_RETURN(index, OfFunction(s.function(), index, "transform_layout", map.from));
    }
    return Done(schedule::TransformLayout(s.state_, BlockAt(a, 0), IntAt(a, 1), map));
  }
  static Outputs DecomposeReduction(Schedule& s, const Arguments& a, Decision&) {
    return OneBlock(schedule::DecomposeReduction(s.state_, BlockAt(a, 0), LoopAt(a, 1)));
  }
  static Outputs RFactor(Schedule& s, const Arguments& a, Decision&) {
    return OneBlock(schedule::RFactor(s.state_, LoopAt(a, 0)));
  }
  static Outputs PadEinsum(Schedule& s, const Arguments& a, Decision&) {
    std::vector<int64_t> multiples;
    for (size_t i = 1; i < a.size(); ++i) multiples.push_back(IntAt(a, i));
    return Done(schedule::PadEinsum(s.state_, BlockAt(a, 0), multiples));
  }
  static Outputs Tensorize(Schedule& s, const Arguments& a, Decision&) {
    return Done(schedule::Tensorize(s.state_, LoopAt(a, 0), TextAt(a, 1)));
  }
};

namespace {

constexpr PrimitiveRow kPrimitives[] = {
    {"get_block", {""}, "b", Rows::GetBlock},
    {"get_loops", {"block"}, "l*", Rows::GetLoops},
    {"get_child_blocks", {"loop"}, "b*", Rows::GetChildBlocks},
    {"get_producers", {"block"}, "b*", Rows::GetProducers},
    {"sample_perfect_tile", {"loop", "n", "max_innermost_factor"}, "v*", Rows::SamplePerfectTile},
    {"sample_categorical", {"*candidates"}, "v", Rows::SampleCategorical},
    {"split", {"loop", "*factors"}, "l*", Rows::Split},
    {"fuse", {"*"}, "l", Rows::Fuse},
    {"reorder", {"*"}, "", Rows::Reorder},
    {"loop_partition", {"loop", "multiple"}, "ll", Rows::LoopPartition},
    {"partition_by_conditions", {"loop"}, "l*", Rows::PartitionByConditions},
    {"add_unit_loop", {"block"}, "l", Rows::AddUnitLoop},
    {"parallel", {"loop"}, "", Rows::Parallel},
    {"vectorize", {"loop"}, "", Rows::Vectorize},
    {"unroll", {"loop"}, "", Rows::Unroll},
    {"bind", {"loop", "thread_axis"}, "", Rows::Bind},
    {"annotate", {"target", "key", "value"}, "", Rows::Annotate},
    {"compute_at", {"block", "loop"}, "", Rows::ComputeAt},
    {"reverse_compute_at", {"block", "loop"}, "", Rows::ReverseComputeAt},
    {"recompute_for", {"producer", "*consumers?+"}, "b", Rows::RecomputeFor},
    {"compute_inline", {"block"}, "", Rows::ComputeInline},
    {"reverse_compute_inline", {"block"}, "", Rows::ReverseComputeInline},
    {"cache_read", {"block", "read_index", "scope", "*consumers?"}, "b", Rows::CacheRead},
    {"cache_write", {"block", "write_index", "scope"}, "b", Rows::CacheWrite},
    {"set_scope", {"block", "write_index", "scope"}, "", Rows::SetScope},
    {"storage_align", {"block", "write_index", "axis", "factor", "offset"}, "", Rows::StorageAlign},
    {"transform_layout", {"block", "write_index", "index_map"}, "", Rows::TransformLayout},
    {"decompose_reduction", {"block", "loop"}, "b", Rows::DecomposeReduction},
    {"rfactor", {"loop"}, "b", Rows::RFactor},
    {"pad_einsum", {"block", "*padding"}, "", Rows::PadEinsum},
    {"tensorize", {"loop", "tensor_intrin"}, "", Rows::Tensorize},
};

const PrimitiveRow& FindPrimitive(std::string_view name) {
  for (const PrimitiveRow& row : kPrimitives) {
    if (name == row.name) return row;
  }
  INGOT_UNREACHABLE("no such primitive");
}

std::string ValueText(const TraceValue& value) {
  if (const auto* block = std::get_if<BlockRV>(&value)) return "b" + std::to_string(block->id);
  if (const auto* loop = std::get_if<LoopRV>(&value)) return "l" + std::to_string(loop->id);
  if (const auto* integer = std::get_if<IntRV>(&value)) return "v" + std::to_string(integer->id);
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return "\"" + *text + "\"";
  if (const auto* expr = std::get_if<ir::PrimExpr>(&value)) return script::PrintExpr(*expr);
  if (const auto* map = std::get_if<IndexMap>(&value)) return map->ToString();
  return "None";
}

std::string ArgumentsText(const Instruction& instruction) {
  std::string text;
  const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
  size_t next = 0;
  for (const char* parameter : instruction.primitive->parameters) {
    if (parameter == nullptr) break;
    std::string_view name = parameter;
    if (const size_t suffix = name.find('?'); suffix != std::string_view::npos) {
      if (next == instruction.arguments.size()) break;
      name = name.substr(0, suffix);
    }
    if (name.starts_with('*')) {
      std::string list;
      for (; next < instruction.arguments.size(); ++next) {
        list += (list.empty() ? "" : ", ") + ValueText(instruction.arguments[next]);
      }
      add(name == "*" ? list : std::string(name.substr(1)) + "=[" + list + "]");
      break;
    }
    const TraceValue& value = instruction.arguments.at(next++);
    const bool plain = name.empty() || std::holds_alternative<BlockRV>(value) || std::holds_alternative<LoopRV>(value);
    add(plain ? ValueText(value) : std::string(name) + "=" + ValueText(value));
  }
  if (!instruction.decision.empty()) {
    std::string list;
    for (int64_t d : instruction.decision) list += (list.empty() ? "" : ", ") + std::to_string(d);
    add("decision=[" + list + "]");
  }
  return text;
}

std::string InstructionText(const Instruction& instruction) {
  std::string outputs;
  for (const TraceValue& output : instruction.outputs) outputs += (outputs.empty() ? "" : ", ") + ValueText(output);
  if (!outputs.empty()) outputs += " = ";
  return outputs + "sch." + instruction.primitive->name + "(" + ArgumentsText(instruction) + ")";
}

int32_t IdOf(const TraceValue& value) {
  if (const auto* block = std::get_if<BlockRV>(&value)) return block->id;
  if (const auto* loop = std::get_if<LoopRV>(&value)) return loop->id;
  if (const auto* integer = std::get_if<IntRV>(&value)) return integer->id;
  return -1;
}
bool IsHandle(const TraceValue& value) {
  return std::holds_alternative<BlockRV>(value) || std::holds_alternative<LoopRV>(value) ||
         std::holds_alternative<IntRV>(value);
}

template <typename T>
std::vector<T> HandlesOf(const std::vector<TraceValue>& values) {
  std::vector<T> handles;
  for (const TraceValue& value : values) handles.push_back(std::get<T>(value));
  return handles;
}
std::vector<TraceValue> Values(const std::vector<LoopRV>& loops) { return {loops.begin(), loops.end()}; }

}  // namespace

std::string Trace::ToString() const {
  std::string text;
  for (const Instruction& instruction : instructions) text += InstructionText(instruction) + "\n";
  return text;
}

std::vector<std::string> Trace::PrimitiveNames() const {
  std::vector<std::string> names;
  for (const Instruction& instruction : instructions) names.emplace_back(instruction.primitive->name);
  return names;
}

std::vector<std::string_view> PrimitiveNames() {
  std::vector<std::string_view> names;
  for (const PrimitiveRow& row : kPrimitives) names.emplace_back(row.name);
  return names;
}

Result<Schedule> Schedule::Create(ir::PrimFunc function, std::vector<TensorIntrin> intrinsics) {
  Schedule schedule;
  INGOT_ASSIGN_OR_RETURN(schedule.state_, ScheduleState::Create(std::move(function), std::move(intrinsics)));
  return schedule;
}

Entity Schedule::Resolve(const TraceValue& value) const {
  if (IsHandle(value)) {
    const int32_t id = IdOf(value);
    return id < 0 || id >= static_cast<int32_t>(entities_.size()) ? Entity(Void{}) : entities_[id];
  }
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* expr = std::get_if<ir::PrimExpr>(&value)) return *expr;
  if (const auto* map = std::get_if<IndexMap>(&value)) return *map;
  return std::monostate{};
}

TraceValue Schedule::NewHandle(const Entity& entity, char kind) {
  const int32_t id = static_cast<int32_t>(entities_.size());
  entities_.push_back(entity);
  if (kind == 'b') return BlockRV{id};
  if (kind == 'l') return LoopRV{id};
  return IntRV{id};
}

Status Schedule::Run(Instruction& instruction, bool replay) {
  const PrimitiveRow& row = *instruction.primitive;
  const std::string_view kinds = row.outputs;
  const bool any_number = kinds.ends_with('*');
  // Void arguments of a list with "?" are left out. Any other void argument, or an empty list with "?+", makes the
  // instruction do nothing and all its outputs void.
  size_t num_fixed = instruction.arguments.size();
  bool needs_one = false;
  for (size_t i = 0; i < row.parameters.size() && row.parameters[i] != nullptr; ++i) {
    const std::string_view parameter = row.parameters[i];
    if (parameter.find('?') == std::string_view::npos) continue;
    num_fixed = i;
    needs_one = parameter.ends_with('+');
  }
  std::vector<Entity> arguments;
  bool is_void = false;
  for (size_t i = 0; i < instruction.arguments.size(); ++i) {
    Entity argument = Resolve(instruction.arguments[i]);
    const bool leave_out = std::holds_alternative<Void>(argument);
    is_void |= leave_out && i < num_fixed;
    if (!leave_out) arguments.push_back(std::move(argument));
  }
  is_void |= needs_one && num_fixed < instruction.arguments.size() && arguments.size() <= num_fixed;
  std::vector<Entity> outputs;
  if (is_void) {
    const size_t count = replay ? instruction.outputs.size() : any_number ? 0 : kinds.size();
    outputs.assign(count, Void{});
  } else {
    const ScheduleState before = state_;
    INGOT_ASSIGN_OR_RETURN(outputs, row.run(*this, arguments, instruction.decision));
    // Where the recorded function had only one part, the trace has no instructions for a second one. Where the first
    // part is missing here, handles that were made before stand for the first part. In both cases the loop stays whole,
    // and later splits of it get a predicate.
    if (replay && row.run == Rows::LoopPartition && instruction.is_void.size() == 2) {
      const bool had_one = instruction.is_void[0] != instruction.is_void[1];
      if (had_one || (!instruction.is_void[0] && std::holds_alternative<Void>(outputs[0]))) {
        state_ = before;
        outputs.assign(2, Void{});
        outputs[instruction.is_void[0] ? 1 : 0] = arguments[0];
      }
    }
  }
  // The instruction was recorded with a void argument, so the trace does not use what exists here.
  if (replay && any_number && instruction.outputs.empty()) outputs.clear();
  if (replay && !instruction.blocks.empty() && outputs.size() != instruction.blocks.size()) {
    // This function has other blocks than the recorded one here: the recorded ones are found by their names.
    std::vector<Entity> found;
    for (const std::string& name : instruction.blocks) {
      const bool exists = std::any_of(outputs.begin(), outputs.end(), [&](const Entity& output) {
        const auto* block = std::get_if<BlockRef>(&output);
        return block != nullptr && block->name == name;
      });
      found.push_back(exists ? Entity(BlockRef{name}) : Entity(Void{}));
    }
    outputs = std::move(found);
  }
  const bool other_number = replay && outputs.size() != instruction.outputs.size();
  if (other_number && row.run == Rows::GetLoops && Rows::WasLeftInPlace(*this, arguments[0])) {
    outputs.assign(instruction.outputs.size(), Void{});
  } else if (other_number) {
    return Status(StatusCode::kInvalidArgument, std::string(row.name) + ": the trace expects " +
                                                    std::to_string(instruction.outputs.size()) +
                                                    " results, this function gives " + std::to_string(outputs.size()));
  }
  for (size_t i = 0; !replay && any_number && i < outputs.size(); ++i) {
    if (const auto* block = std::get_if<BlockRef>(&outputs[i])) instruction.blocks.push_back(block->name);
  }
  instruction.outputs.clear();
  instruction.is_void.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    instruction.is_void.push_back(std::holds_alternative<Void>(outputs[i]));
    instruction.outputs.push_back(NewHandle(outputs[i], any_number ? kinds[0] : kinds[i]));
  }
  return Status();
}

std::vector<TraceValue> Schedule::Apply(const char* primitive, std::vector<TraceValue> arguments,
                                        std::vector<int64_t> decision) {
  if (!status_.ok()) return {};
  Instruction instruction{&FindPrimitive(primitive), std::move(arguments), {}, std::move(decision), {}, {}};
  status_ = Run(instruction, false);
  if (!status_.ok()) return {};
  trace_.instructions.push_back(instruction);
  return instruction.outputs;
}

Result<Schedule> Replay(const Trace& trace, ir::PrimFunc function, std::vector<TensorIntrin> intrinsics) {
  INGOT_ASSIGN_OR_RETURN(Schedule schedule, Schedule::Create(std::move(function), std::move(intrinsics)));
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    Instruction instruction = trace.instructions[i];
    Status status = schedule.Run(instruction, true);
    if (!status.ok()) {
      return std::move(status).WithContext("instruction " + std::to_string(i) + " of the trace, " +
                                           InstructionText(trace.instructions[i]) + ", does not fit this function");
    }
    schedule.trace_.instructions.push_back(std::move(instruction));
  }
  return schedule;
}

bool Schedule::IsVoid(BlockRV block) const { return std::holds_alternative<Void>(Resolve(block)); }
bool Schedule::IsVoid(LoopRV loop) const { return std::holds_alternative<Void>(Resolve(loop)); }
BlockSite Schedule::Block(BlockRV block) const {
  const Entity entity = Resolve(block);
  INGOT_CHECK(std::holds_alternative<BlockRef>(entity), "a void block");
  return state_.FindBlock(std::get<BlockRef>(entity).name).value();
}
LoopSite Schedule::Loop(LoopRV loop) const {
  const Entity entity = Resolve(loop);
  INGOT_CHECK(std::holds_alternative<LoopVar>(entity), "a void loop");
  return state_.FindLoop(std::get<LoopVar>(entity)).value();
}
int64_t Schedule::Int(IntRV value) const {
  const Entity entity = Resolve(value);
  return std::holds_alternative<int64_t>(entity) ? std::get<int64_t>(entity) : 1;
}

BlockRV Schedule::ApplyForBlock(const char* primitive, std::vector<TraceValue> arguments) {
  const std::vector<TraceValue> outputs = Apply(primitive, std::move(arguments));
  return outputs.empty() ? BlockRV{} : std::get<BlockRV>(outputs[0]);
}
BlockRV Schedule::GetBlock(const std::string& name) { return ApplyForBlock("get_block", {name}); }
std::vector<LoopRV> Schedule::GetLoops(BlockRV block) { return HandlesOf<LoopRV>(Apply("get_loops", {block})); }
std::vector<BlockRV> Schedule::GetChildBlocks(LoopRV loop) {
  return HandlesOf<BlockRV>(Apply("get_child_blocks", {loop}));
}
std::vector<BlockRV> Schedule::GetProducers(BlockRV block) {
  return HandlesOf<BlockRV>(Apply("get_producers", {block}));
}
std::vector<IntRV> Schedule::SamplePerfectTile(LoopRV loop, int64_t n, int64_t max_innermost,
                                               std::vector<int64_t> decision) {
  return HandlesOf<IntRV>(Apply("sample_perfect_tile", {loop, n, max_innermost}, std::move(decision)));
}
IntRV Schedule::SampleCategorical(const std::vector<int64_t>& candidates, int64_t decision) {
  const std::vector<TraceValue> outputs =
      Apply("sample_categorical", {candidates.begin(), candidates.end()}, {decision});
  return outputs.empty() ? IntRV{} : std::get<IntRV>(outputs[0]);
}
std::vector<LoopRV> Schedule::Split(LoopRV loop, const std::vector<Factor>& factors) {
  std::vector<TraceValue> arguments{loop};
  for (const Factor& factor : factors) {
    std::visit([&](const auto& f) { arguments.push_back(f); }, factor);
  }
  std::vector<LoopRV> loops = HandlesOf<LoopRV>(Apply("split", std::move(arguments)));
  loops.resize(factors.size());  // void handles after a failure, or for a void loop
  return loops;
}
LoopRV Schedule::Fuse(const std::vector<LoopRV>& loops) {
  const std::vector<TraceValue> outputs = Apply("fuse", Values(loops));
  return outputs.empty() ? LoopRV{} : std::get<LoopRV>(outputs[0]);
}
void Schedule::Reorder(const std::vector<LoopRV>& loops) { Apply("reorder", Values(loops)); }
Schedule::Tiled Schedule::Tile(LoopRV x, LoopRV y, const Factor& x_factor, const Factor& y_factor) {
  const std::vector<LoopRV> xs = Split(x, {kRest, x_factor}), ys = Split(y, {kRest, y_factor});
  Reorder({xs[0], ys[0], xs[1], ys[1]});
  return {xs[0], ys[0], xs[1], ys[1]};
}
Schedule::Parts Schedule::LoopPartition(LoopRV loop, int64_t multiple) {
  const std::vector<TraceValue> outputs = Apply("loop_partition", {loop, multiple});
  if (outputs.size() != 2) return {};
  return {std::get<LoopRV>(outputs[0]), std::get<LoopRV>(outputs[1])};
}
std::vector<LoopRV> Schedule::PartitionByConditions(LoopRV loop) {
  return HandlesOf<LoopRV>(Apply("partition_by_conditions", {loop}));
}
LoopRV Schedule::AddUnitLoop(BlockRV block) {
  const std::vector<TraceValue> outputs = Apply("add_unit_loop", {block});
  return outputs.empty() ? LoopRV{} : std::get<LoopRV>(outputs[0]);
}
void Schedule::Parallel(LoopRV loop) { Apply("parallel", {loop}); }
void Schedule::Vectorize(LoopRV loop) { Apply("vectorize", {loop}); }
void Schedule::Unroll(LoopRV loop) { Apply("unroll", {loop}); }
void Schedule::Bind(LoopRV loop, const std::string& thread_axis) { Apply("bind", {loop, thread_axis}); }
void Schedule::Annotate(LoopRV loop, const std::string& key, std::variant<int64_t, std::string> value) {
  std::visit([&](const auto& v) { Apply("annotate", {loop, key, v}); }, value);
}
void Schedule::Annotate(BlockRV block, const std::string& key, std::variant<int64_t, std::string> value) {
  std::visit([&](const auto& v) { Apply("annotate", {block, key, v}); }, value);
}
void Schedule::ComputeAt(BlockRV block, LoopRV loop) { Apply("compute_at", {block, loop}); }
void Schedule::ReverseComputeAt(BlockRV block, LoopRV loop) { Apply("reverse_compute_at", {block, loop}); }
BlockRV Schedule::RecomputeFor(BlockRV producer, const std::vector<BlockRV>& consumers) {
  std::vector<TraceValue> arguments{producer};
  arguments.insert(arguments.end(), consumers.begin(), consumers.end());
  return ApplyForBlock("recompute_for", std::move(arguments));
}
void Schedule::ComputeInline(BlockRV block) { Apply("compute_inline", {block}); }
void Schedule::ReverseComputeInline(BlockRV block) { Apply("reverse_compute_inline", {block}); }
BlockRV Schedule::CacheRead(BlockRV block, int64_t read_index, const std::string& scope,
                            const std::vector<BlockRV>& consumers) {
  std::vector<TraceValue> arguments{block, read_index, scope};
  arguments.insert(arguments.end(), consumers.begin(), consumers.end());
  return ApplyForBlock("cache_read", std::move(arguments));
}
BlockRV Schedule::CacheWrite(BlockRV block, int64_t write_index, const std::string& scope) {
  return ApplyForBlock("cache_write", {block, write_index, scope});
}
void Schedule::SetScope(BlockRV block, int64_t write_index, const std::string& scope) {
  Apply("set_scope", {block, write_index, scope});
}
void Schedule::StorageAlign(BlockRV block, int64_t write_index, int64_t axis, int64_t factor, int64_t offset) {
  Apply("storage_align", {block, write_index, axis, factor, offset});
}
void Schedule::TransformLayout(BlockRV block, int64_t write_index, const IndexMap& map) {
  Apply("transform_layout", {block, write_index, map});
}
BlockRV Schedule::DecomposeReduction(BlockRV block, LoopRV loop) {
  return ApplyForBlock("decompose_reduction", {block, loop});
}
BlockRV Schedule::RFactor(LoopRV loop) { return ApplyForBlock("rfactor", {loop}); }
void Schedule::PadEinsum(BlockRV block, const std::vector<int64_t>& multiples) {
  std::vector<TraceValue> arguments{block};
  arguments.insert(arguments.end(), multiples.begin(), multiples.end());
  Apply("pad_einsum", std::move(arguments));
}
void Schedule::Tensorize(LoopRV loop, const std::string& intrinsic) { Apply("tensorize", {loop, intrinsic}); }

}  // namespace ingot::schedule
