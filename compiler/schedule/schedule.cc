// The engine of schedules: how the rows of primitives.def run as instructions, print, and replay, and the handles that
// they make. The primitives themselves are in primitives/.
#include "compiler/schedule/schedule.h"

#include <algorithm>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/widen_indices.h"
#include "compiler/script/printer.h"

namespace ingot::schedule {
namespace {

// ---- Text
std::string Text(const Handle& handle) {
  constexpr const char* kLetters[] = {"b", "l", "v"};
  return kLetters[handle.index()] + std::visit([](auto h) { return std::to_string(h.id); }, handle);
}
std::string Text(BlockRV block) { return Text(Handle(block)); }
std::string Text(LoopRV loop) { return Text(Handle(loop)); }
std::string Text(int64_t number) { return std::to_string(number); }
std::string Text(const std::string& text) { return "\"" + text + "\""; }
std::string Text(const IndexMap& map) { return map.ToString(); }
std::string Text(const BlockOrLoop& target) {
  return std::visit([](auto handle) { return Text(handle); }, target);
}
std::string Text(const IntOrText& value) {
  return std::visit([](const auto& v) { return Text(v); }, value);
}
std::string Text(const Factor& factor) {
  if (const auto* number = std::get_if<int64_t>(&factor)) return Text(*number);
  if (const auto* sampled = std::get_if<IntRV>(&factor)) return Text(Handle(*sampled));
  if (const auto* expr = std::get_if<ir::PrimExpr>(&factor)) return script::PrintExpr(*expr);
  return "None";
}
template <typename List>
std::string Joined(const List& list) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + Text(item);
  return text;
}
template <typename T>
std::string Text(const std::vector<T>& list) {
  return "[" + Joined(list) + "]";
}
std::string Text(const LoopRVs& loops) { return Joined(loops); }
std::string Text(const BlockRVs& blocks) { return "[" + Joined(blocks) + "]"; }
std::string Text(const Decision& decision) { return Text(decision.numbers); }

bool IsHandle(const Operand& operand) {
  return std::holds_alternative<BlockRV>(operand) || std::holds_alternative<LoopRV>(operand) ||
         std::holds_alternative<BlockOrLoop>(operand);
}
// Whether an operand is not printed.
bool IsLeftOut(const Operand& operand) {
  if (const auto* blocks = std::get_if<OptionalBlocks>(&operand)) return blocks->empty();
  const auto* decision = std::get_if<Decision>(&operand);
  return decision != nullptr && decision->numbers.empty();
}

// ---- Handles in operands
std::vector<Handle> HandlesIn(const Operand& operand) {
  return std::visit(
      []<typename T>(const T& value) -> std::vector<Handle> {
        if constexpr (std::is_same_v<T, BlockRV> || std::is_same_v<T, LoopRV>) {
          return {value};
        } else if constexpr (std::is_same_v<T, BlockOrLoop>) {
          return {std::visit([](auto handle) { return Handle(handle); }, value)};
        } else if constexpr (std::is_same_v<T, LoopRVs> || std::is_base_of_v<BlockRVs, T>) {
          return {value.begin(), value.end()};
        } else if constexpr (std::is_same_v<T, Factor>) {
          const auto* sampled = std::get_if<IntRV>(&value);
          return sampled != nullptr ? std::vector<Handle>{*sampled} : std::vector<Handle>{};
        } else if constexpr (std::is_same_v<T, std::vector<Factor>>) {
          std::vector<Handle> handles;
          for (const Factor& factor : value) {
            if (const auto* sampled = std::get_if<IntRV>(&factor)) handles.push_back(*sampled);
          }
          return handles;
        } else {
          return {};
        }
      },
      operand);
}

// ---- Expressions in operands
// The expression with its symbolic variables replaced by the function's of the same names, except those in `own`; an
// error where the function has no such variable.
Result<ir::PrimExpr> OfFunction(const ir::PrimFunc& function, const ir::PrimExpr& given, const std::string& where,
                                const std::vector<ir::PrimVar>& own = {}) {
  const ir::PrimExpr expr = WidenIndex(given);
  std::vector<ir::PrimVar> known = ir::FreePrimVars(function);
  for (const ir::PrimFuncParam& param : function->params) {
    if (!param.buffer) known.push_back(param.var);
  }
  ir::PrimVarMap map;
  for (const ir::PrimVar& var : ir::FreePrimVars(expr)) {
    if (std::any_of(own.begin(), own.end(), [&](const ir::PrimVar& v) { return v.same_as(var); })) continue;
    const auto it = std::find_if(known.begin(), known.end(),
                                 [&](const ir::PrimVar& v) { return v->name == var->name && v->dtype == var->dtype; });
    if (it == known.end()) {
      return Status(StatusCode::kInvalidArgument, where + ": the function has no symbolic variable " + var->name);
    }
    map.emplace(var, *it);
  }
  return ir::Substitute(expr, map);
}

// The operand over the function's symbolic variables.
Result<Operand> OfFunction(const ir::PrimFunc& function, Operand operand, const std::string& where) {
  const auto translate = [&](Factor& factor) -> Status {
    auto* expr = std::get_if<ir::PrimExpr>(&factor);
    if (expr == nullptr) return Status();
    INGOT_ASSIGN_OR_RETURN(*expr, OfFunction(function, *expr, where));
    return Status();
  };
  if (auto* point = std::get_if<Factor>(&operand)) {
    INGOT_RETURN_IF_ERROR(translate(*point));
  } else if (auto* factors = std::get_if<std::vector<Factor>>(&operand)) {
    for (Factor& factor : *factors) INGOT_RETURN_IF_ERROR(translate(factor));
  } else if (auto* map = std::get_if<IndexMap>(&operand)) {
    for (ir::PrimExpr& index : map->to) {
      INGOT_ASSIGN_OR_RETURN(index, OfFunction(function, index, where, map->from));
    }
  }
  return operand;
}

}  // namespace

struct Schedule::Engine {
  using Results = std::vector<Entity>;

  // A row of primitives.def.
  struct Row {
    const char* name;
    std::string_view operands;  // their names, separated by ", "
    Handle kind = {};           // of its results
    size_t num_results = 0;     // unless it makes a list
    bool makes_list = false;    // any number of results
    bool cuts = false;          // its results are parts of its first operand, a loop
    Result<Results> (*run)(Schedule& schedule, const std::vector<Operand>& operands,
                           Instruction& instruction) = nullptr;
  };
  static const Row& RowOf(const Instruction& instruction) { return kRows[static_cast<size_t>(instruction.primitive)]; }

  // ---- What an operand stands for, as the primitive's function takes it.
  static BlockName Read(const Schedule& s, BlockRV block) { return std::get<BlockRef>(s.Resolve(block)).name; }
  static LoopVar Read(const Schedule& s, LoopRV loop) { return std::get<LoopVar>(s.Resolve(loop)); }
  static std::variant<BlockName, LoopVar> Read(const Schedule& s, const BlockOrLoop& target) {
    return std::visit([&](auto handle) -> std::variant<BlockName, LoopVar> { return Read(s, handle); }, target);
  }
  static std::vector<LoopVar> Read(const Schedule& s, const LoopRVs& loops) {
    std::vector<LoopVar> vars;
    for (LoopRV loop : loops) vars.push_back(Read(s, loop));
    return vars;
  }
  static std::vector<BlockName> Read(const Schedule& s, const BlockRVs& blocks) {
    std::vector<BlockName> names;
    for (BlockRV block : blocks) {
      if (!s.IsVoid(block)) names.push_back(Read(s, block));
    }
    return names;
  }
  static std::optional<ir::PrimExpr> Read(const Schedule& s, const Factor& factor) {
    if (const auto* number = std::get_if<int64_t>(&factor)) return ir::Int64(*number);
    if (const auto* sampled = std::get_if<IntRV>(&factor)) return ir::Int64(s.Int(*sampled));
    if (const auto* expr = std::get_if<ir::PrimExpr>(&factor)) return *expr;
    return std::nullopt;
  }
  static std::vector<std::optional<ir::PrimExpr>> Read(const Schedule& s, const std::vector<Factor>& factors) {
    std::vector<std::optional<ir::PrimExpr>> exprs;
    for (const Factor& factor : factors) exprs.push_back(Read(s, factor));
    return exprs;
  }
  static ir::AttrValue Read(const Schedule&, const IntOrText& value) {
    return std::visit([](const auto& v) { return ir::AttrValue(v); }, value);
  }
  // int64_t, std::vector<int64_t>, std::string, IndexMap and Decision stand for themselves.
  template <typename T>
  requires(!std::is_base_of_v<BlockRVs, T>) static const T& Read(const Schedule&, const T& value) { return value; }

  // ---- What the handles of a method's result stand for: the method's result type, and what the function returns.
  static Entity OrVoid(const std::optional<LoopVar>& loop) { return loop ? Entity(*loop) : Entity(Void{}); }
  static Results Made(std::type_identity<BlockRV>, const BlockName& block) { return {BlockRef{block}}; }
  static Results Made(std::type_identity<LoopRV>, const LoopVar& loop) { return {loop}; }
  static Results Made(std::type_identity<IntRV>, const Sampled<int64_t>& sampled) { return {sampled.value}; }
  static Results Made(std::type_identity<PartRVs>, const LoopParts& parts) {
    return {OrVoid(parts.main), OrVoid(parts.tail)};
  }
  static Results Made(std::type_identity<BlockRVs>, const std::vector<BlockName>& blocks) {
    Results results;
    for (const BlockName& block : blocks) results.push_back(BlockRef{block});
    return results;
  }
  static Results Made(std::type_identity<LoopRVs>, const std::vector<LoopVar>& loops) {
    return {loops.begin(), loops.end()};
  }
  static Results Made(std::type_identity<LoopRVs>, const std::vector<std::optional<LoopVar>>& loops) {
    Results results;
    for (const std::optional<LoopVar>& loop : loops) results.push_back(OrVoid(loop));
    return results;
  }
  static Results Made(std::type_identity<IntRVs>, const Sampled<std::vector<int64_t>>& sampled) {
    return {sampled.value.begin(), sampled.value.end()};
  }

  template <auto kFunction, typename R, typename... Types, size_t... kPlaces>
  static Result<Results> Execute(Schedule& s, const std::vector<Operand>& operands, Instruction& instruction,
                                 std::index_sequence<kPlaces...>) {
    auto made = kFunction(s.state_, Read(s, std::get<Types>(operands[kPlaces]))...);
    if constexpr (std::is_void_v<R>) {
      if (!made.ok()) return Status(std::move(made));
      return Results();
    } else {
      if (!made.ok()) return std::move(made).status();
      if constexpr (requires { made->decision; }) std::get<Decision>(instruction.operands.back()) = made->decision;
      return Made(std::type_identity<R>(), *made);
    }
  }

  // The row of a function and of the type R(Types...) of its method.
  template <auto kFunction, typename R, typename... Types>
  static Row MakeRow(const char* name, std::string_view operands, std::type_identity<R(Types...)>) {
    Row row{.name = name, .operands = operands, .cuts = std::is_same_v<R, PartRVs>};
    row.run = [](Schedule& s, const std::vector<Operand>& values, Instruction& instruction) {
      return Execute<kFunction, R, std::decay_t<Types>...>(s, values, instruction, std::index_sequence_for<Types...>());
    };
    if constexpr (std::is_same_v<R, PartRVs>) {
      row.kind = LoopRV();
      row.num_results = 2;
    } else if constexpr (requires { typename R::value_type; }) {
      row.kind = typename R::value_type();
      row.makes_list = true;
    } else if constexpr (!std::is_void_v<R>) {
      row.kind = R();
      row.num_results = 1;
    }
    return row;
  }
  static const Row kRows[];

  // What a method returns.
  template <typename R>
  static R Returned(const std::vector<Handle>& handles) {
    if constexpr (std::is_same_v<R, PartRVs>) {
      return handles.empty() ? R() : R{std::get<LoopRV>(handles[0]), std::get<LoopRV>(handles[1])};
    } else if constexpr (requires { typename R::value_type; }) {
      R list;
      for (const Handle& handle : handles) list.push_back(std::get<typename R::value_type>(handle));
      return list;
    } else if constexpr (!std::is_void_v<R>) {
      return handles.empty() ? R() : std::get<R>(handles[0]);
    }
  }

  // Handles and an only operand are printed without their names.
  static std::string TextOf(const Instruction& instruction) {
    const Row& row = RowOf(instruction);
    const bool is_only = instruction.operands.size() == 1;
    std::string text, names(row.operands);
    for (size_t i = 0, begin = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      const size_t end = std::min(names.find(", ", begin), names.size());
      const std::string name = names.substr(begin, end - begin) + "=";
      begin = end + 2;
      if (IsLeftOut(operand)) continue;
      text += (text.empty() ? "" : ", ") + (is_only || IsHandle(operand) ? "" : name) +
              std::visit([](const auto& value) { return Text(value); }, operand);
    }
    const std::string results = Joined(instruction.results);
    return results + (results.empty() ? "" : " = ") + "sch." + row.name + "(" + text + ")";
  }

  static bool IsVoid(const Schedule& s, const Operand& operand) {
    if (std::holds_alternative<OptionalBlocks>(operand)) return false;
    const std::vector<Handle> handles = HandlesIn(operand);
    const auto num_void = std::ranges::count_if(handles, [&](const Handle& handle) { return s.IsVoid(handle); });
    if (!std::holds_alternative<AtLeastOneBlock>(operand)) return num_void > 0;
    return num_void > 0 && num_void == std::ssize(handles);
  }

  // Whether an instruction of the trace had this block and a void handle as operands: it was to move the block to a
  // loop that does not exist here, so the block is where it was.
  static bool WasLeftInPlace(const Schedule& s, const Operand& operand) {
    const auto* block = std::get_if<BlockRV>(&operand);
    if (block == nullptr) return false;
    return std::ranges::any_of(s.trace_.instructions, [&](const Instruction& instruction) {
      bool has_void = false, has_block = false;
      for (const Operand& other : instruction.operands) {
        for (const Handle& handle : HandlesIn(other)) {
          const auto* ref = std::get_if<BlockRef>(&s.Resolve(handle));
          has_void |= s.IsVoid(handle);
          has_block |= ref != nullptr && ref->name == Read(s, *block);
        }
      }
      return has_void && has_block;
    });
  }

  // Whether a loop that the recorded function cut in parts stays whole here, and later splits of it get a predicate.
  // Where the recorded function had only one part, the trace has no instructions for a second one. Where the first part
  // is missing here, handles that were made before stand for the first part.
  static bool StaysWhole(const Instruction& recorded, const Results& parts) {
    return recorded.is_void[0] != recorded.is_void[1] ||
           (!recorded.is_void[0] && std::holds_alternative<Void>(parts[0]));
  }

  // Brings the results of a replayed instruction to the number of the recorded ones.
  static Status MatchNumber(const Schedule& s, const Instruction& recorded, Results& results) {
    const Row& row = RowOf(recorded);
    // The instruction was recorded with a void operand, so the trace does not use what exists here.
    if (row.makes_list && recorded.results.empty()) results.clear();
    if (results.size() == recorded.results.size()) return Status();
    if (!recorded.blocks.empty()) {
      // This function has other blocks than the recorded one here: the recorded ones are found by their names.
      Results found;
      for (const std::string& name : recorded.blocks) {
        const bool exists = std::ranges::any_of(results, [&](const Entity& result) {
          const auto* block = std::get_if<BlockRef>(&result);
          return block != nullptr && block->name == name;
        });
        found.push_back(exists ? Entity(BlockRef{name}) : Entity(Void{}));
      }
      results = std::move(found);
      return Status();
    }
    if (!std::ranges::any_of(recorded.operands, [&](const Operand& operand) { return WasLeftInPlace(s, operand); })) {
      return Status(StatusCode::kInvalidArgument,
                    std::string(row.name) + ": the trace expects " + std::to_string(recorded.results.size()) +
                        " results, this function gives " + std::to_string(results.size()));
    }
    results.assign(recorded.results.size(), Void{});
    return Status();
  }
};

const Schedule::Engine::Row Schedule::Engine::kRows[] = {
#define INGOT_PRIMITIVE(method, name, result, parameters, ...) \
  MakeRow<&schedule::method>(name, #__VA_ARGS__, std::type_identity<result parameters>()),
#include "compiler/schedule/primitives.def"
};

std::string Trace::ToString() const {
  std::string text;
  for (const Instruction& instruction : instructions) text += Schedule::Engine::TextOf(instruction) + "\n";
  return text;
}

std::vector<std::string> Trace::PrimitiveNames() const {
  const std::vector<std::string_view> all = schedule::PrimitiveNames();
  std::vector<std::string> names;
  for (const Instruction& instruction : instructions)
    names.emplace_back(all[static_cast<size_t>(instruction.primitive)]);
  return names;
}

std::vector<std::string_view> PrimitiveNames() {
  return {
#define INGOT_PRIMITIVE(method, name, ...) name,
#include "compiler/schedule/primitives.def"
  };
}

Result<Schedule> Schedule::Create(ir::PrimFunc function, std::vector<TensorIntrin> intrinsics) {
  Schedule schedule;
  INGOT_ASSIGN_OR_RETURN(schedule.state_, ScheduleState::Create(std::move(function), std::move(intrinsics)));
  return schedule;
}

const Schedule::Entity& Schedule::Resolve(Handle handle) const {
  static const Entity kVoid = Void{};
  const int32_t id = std::visit([](auto h) { return h.id; }, handle);
  return id < 0 || id >= std::ssize(entities_) ? kVoid : entities_[id];
}

Status Schedule::Run(Instruction& instruction, bool replay) {
  const Engine::Row& row = Engine::RowOf(instruction);
  std::vector<Entity> results;
  if (std::ranges::any_of(instruction.operands, [&](const Operand& o) { return Engine::IsVoid(*this, o); })) {
    results.assign(replay ? instruction.results.size() : row.num_results, Void{});
  } else {
    std::vector<Operand> operands;
    for (const Operand& operand : instruction.operands) {
      INGOT_ASSIGN_OR_RETURN(Operand own, OfFunction(function(), operand, row.name));
      operands.push_back(std::move(own));
    }
    const ScheduleState before = state_;
    INGOT_ASSIGN_OR_RETURN(results, row.run(*this, operands, instruction));
    if (replay && row.cuts && Engine::StaysWhole(instruction, results)) {
      state_ = before;
      results.assign(2, Void{});
      results[instruction.is_void[0] ? 1 : 0] = Resolve(std::get<LoopRV>(operands[0]));
    }
  }
  if (replay) {
    INGOT_RETURN_IF_ERROR(Engine::MatchNumber(*this, instruction, results));
  } else if (row.makes_list) {
    for (const Entity& result : results) {
      if (const auto* block = std::get_if<BlockRef>(&result)) instruction.blocks.push_back(block->name);
    }
  }
  instruction.results.clear();
  instruction.is_void.clear();
  for (Entity& result : results) {
    instruction.is_void.push_back(std::holds_alternative<Void>(result));
    Handle handle = row.kind;
    std::visit([&](auto& h) { h.id = static_cast<int32_t>(entities_.size()); }, handle);
    instruction.results.push_back(handle);
    entities_.push_back(std::move(result));
  }
  return Status();
}

template <typename R>
R Schedule::Call(Primitive primitive, std::vector<Operand> operands) {
  Instruction instruction{primitive, std::move(operands), {}, {}, {}};
  if (status_.ok() && trace_.instructions.size() == refused_) {
    status_ = Refuse(Engine::RowOf(instruction).name, "instruction " + std::to_string(refused_), "is to be refused");
  }
  if (status_.ok()) status_ = Run(instruction, false);
  if (!status_.ok()) return R();
  trace_.instructions.push_back(instruction);
  return Engine::Returned<R>(instruction.results);
}

#define INGOT_PRIMITIVE(method, name, result, parameters, ...) \
  result Schedule::method parameters { return Call<result>(Primitive::k##method, {__VA_ARGS__}); }
#include "compiler/schedule/primitives.def"

Schedule::Tiled Schedule::Tile(LoopRV x, LoopRV y, const Factor& x_factor, const Factor& y_factor) {
  const LoopRVs xs = Split(x, {kRest, x_factor}), ys = Split(y, {kRest, y_factor});
  Reorder({xs[0], ys[0], xs[1], ys[1]});
  return {xs[0], ys[0], xs[1], ys[1]};
}

int64_t Schedule::Choose(const std::string& name, int64_t usual, std::vector<int64_t> candidates) {
  if (!status_.ok()) return usual;
  const auto is_same = [&](const Choice& choice) { return choice.name == name || choice.name.starts_with(name + "."); };
  const auto times = std::ranges::count_if(choices_, is_same);
  Choice choice{times == 0 ? name : name + "." + std::to_string(times + 1), usual, usual, std::move(candidates)};
  choice.candidates.push_back(usual);
  std::ranges::sort(choice.candidates);
  choice.candidates.erase(std::ranges::unique(choice.candidates).begin(), choice.candidates.end());
  if (const auto given = chosen_.find(choice.name); given != chosen_.end()) {
    if (!std::ranges::binary_search(choice.candidates, given->second)) {
      status_ = Status(StatusCode::kInvalidArgument, choice.name + ": " + std::to_string(given->second) +
                                                         " is none of the numbers that its rule may choose");
      return usual;
    }
    choice.value = given->second;
  }
  choices_.push_back(std::move(choice));
  return choices_.back().value;
}

Result<Schedule> Replay(const Trace& trace, ir::PrimFunc function, std::vector<TensorIntrin> intrinsics) {
  INGOT_ASSIGN_OR_RETURN(Schedule schedule, Schedule::Create(std::move(function), std::move(intrinsics)));
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    Instruction instruction = trace.instructions[i];
    Status status = schedule.Run(instruction, true);
    if (!status.ok()) {
      return std::move(status).WithContext("instruction " + std::to_string(i) + " of the trace, " +
                                           Schedule::Engine::TextOf(trace.instructions[i]) +
                                           ", does not fit this function");
    }
    schedule.trace_.instructions.push_back(std::move(instruction));
  }
  return schedule;
}

BlockSite Schedule::Block(BlockRV block) const {
  const auto* ref = std::get_if<BlockRef>(&Resolve(block));
  if (ref != nullptr && (status_.ok() || state_.FindBlock(ref->name).ok())) return state_.FindBlock(ref->name).value();
  INGOT_CHECK(!status_.ok(), "a void block");
  const ir::Stmt store = ir::Make<ir::BufferStoreNode>(ir::MakeBuffer("void", DataType::Int(64), {}), ir::Int64(0),
                                                       std::vector<ir::PrimExpr>());
  const ir::Block empty = ir::Make<ir::BlockNode>("", std::vector<ir::IterVar>(), std::vector<ir::BufferRegion>(),
                                                  std::vector<ir::BufferRegion>(), store);
  return {ir::Make<ir::BlockRealizeNode>(std::vector<ir::PrimExpr>(), ir::BoolImm(true), empty), {}};
}

LoopSite Schedule::Loop(LoopRV loop) const {
  const auto* var = std::get_if<LoopVar>(&Resolve(loop));
  if (var != nullptr && (status_.ok() || state_.FindLoop(*var).ok())) return state_.FindLoop(*var).value();
  INGOT_CHECK(!status_.ok(), "a void loop");
  return {
      ir::Make<ir::ForNode>(ir::MakePrimVar("void"), ir::Int64(0), ir::Int64(1), ir::ForKind::kSerial, ir::MakeSeq({})),
      {}};
}

int64_t Schedule::Int(IntRV value) const {
  const auto* number = std::get_if<int64_t>(&Resolve(value));
  return number != nullptr ? *number : 1;
}

}  // namespace ingot::schedule
