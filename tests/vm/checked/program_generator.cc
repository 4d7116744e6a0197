// A value of a wanted type is made by instructions that follow from the type; statements then use what there is. Helper
// functions are made where a closure or a call wants one, of a signature that subtyping allows in its place.
#include "tests/vm/checked/program_generator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "vm/program/program_builder.h"

namespace ingot::vm::checked {
namespace {

const DataType kFloat32 = DataType::Float(32), kInt64 = DataType::Int(64);

bool IsReference(const Type& type) {
  return type.kind == ValueKind::kString || type.kind == ValueKind::kTuple || type.kind == ValueKind::kOptional ||
         type.kind == ValueKind::kClosure || type.kind == ValueKind::kObject;
}
bool IsAny(const Type& type) { return type.kind == ValueKind::kObject && type.class_name == "any"; }

// Subtyping as the generator has it.
bool IsBelow(const Type& type, const Type& above) {
  if (IsAny(above)) return IsReference(type);
  if (type.kind != above.kind || type.dims.size() != above.dims.size() || type.class_name != above.class_name ||
      type.elements.size() != above.elements.size() || type.results.size() != above.results.size()) {
    return false;
  }
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (above.dims[i] && type.dims[i] != above.dims[i]) return false;
  }
  if (type.is_tensor() && (type.dtype != above.dtype || type.storage != above.storage)) return false;
  for (size_t i = 0; i < type.elements.size(); ++i) {
    const Type &a = type.elements[i], &b = above.elements[i];
    if (!(type.kind == ValueKind::kClosure ? IsBelow(b, a) : IsBelow(a, b))) return false;
  }
  for (size_t i = 0; i < type.results.size(); ++i) {
    if (!IsBelow(type.results[i], above.results[i])) return false;
  }
  return true;
}

class Generator {
 public:
  Generator(uint64_t seed, bool breaks)
      : random_(seed), until_fault_(breaks ? 1 + static_cast<int>(random_.Below(60)) : 0) {}

  Program Run() {
    MakeTables();
    Signature main;
    main.symbols = {{"n", 1, 8}};
    main.params = {{"x", Type::Tensor(kFloat32, {DimCode::Slot(0)}, Storage::kBorrowed)}, {"k", Type::Int()}};
    const size_t count = 1 + random_.Below(3);
    for (size_t i = 0; i < count; ++i) main.results.push_back({StrCat({"y", i}), RandomType(2)});
    program_.functions.emplace_back();
    program_.functions[0] = MakeFunction("main", main, true, FunctionId(0));
    return std::move(program_);
  }

 private:
  struct Body {
    FunctionBuilder* builder;
    FunctionId id;
    std::vector<RegisterId> live;
    size_t scope = 0;  // registers from here on belong to the innermost block
    int64_t arena_bytes = 0;
    int statements = 0;
    bool is_main = false;
    std::vector<std::pair<PlanEntryId, bool>> entries;  // true: lives to the end
    std::vector<PlanEntryId> dead;                      // whose places later entries may take
  };

  // True at one place of a program that breaks a rule.
  bool Fault() { return until_fault_ > 0 && --until_fault_ == 0; }

  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[random_.Below(items.size())];
  }

  void AddConstant(DataType dtype, std::vector<int64_t> dims, const std::vector<uint8_t>& bytes) {
    Constant constant;
    constant.name = StrCat({"c", program_.constants.size()});
    constant.dtype = dtype;
    constant.dims = std::move(dims);
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    constant.bytes = SharedBytes::Own(std::vector<std::byte>(begin, begin + bytes.size()));
    program_.constants.push_back(std::move(constant));
  }

  void MakeTables() {
    AddConstant(kFloat32, {4}, {0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64});
    AddConstant(kInt64, {2}, {1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0});
    AddConstant(DataType::Bool(), {2}, {1, 0});
    State state;
    state.name = "s0";
    state.dtype = kFloat32;
    state.dims = {4};
    program_.states.push_back(state);
    state.name = "s1";
    state.dtype = kInt64;
    state.dims = {2};
    state.initial = ConstantId(1);
    program_.states.push_back(state);
    program_.externals.push_back({"e", {{}, {{"a", Type::Int()}}, {{"b", Type::Int()}}}, 0});
    Kernel unary;
    unary.name = "unary";
    unary.params = {{"a", ParamRole::kIn, kFloat32, {DimCode::Slot(0)}, 4, std::nullopt},
                    {"b", ParamRole::kOut, kFloat32, {DimCode::Slot(0)}, 4, std::nullopt}};
    unary.ints = {{"n", kInt64}};
    program_.kernels.push_back(unary);
    Kernel update;
    update.name = "update";
    update.params = {{"a", ParamRole::kInOut, kFloat32, {DimCode(4)}, 4, std::nullopt}};
    program_.kernels.push_back(update);
    Kernel pair;
    pair.name = "pair";
    pair.params = {{"a", ParamRole::kIn, kFloat32, {DimCode(4)}, 4, std::nullopt},
                   {"b", ParamRole::kOut, kFloat32, {DimCode(4)}, 4, 0}};
    program_.kernels.push_back(pair);
  }

  // ---- types

  Type TensorType(Storage storage) {
    switch (random_.Below(4)) {
      case 0:
        return Type::Tensor(kInt64, {DimCode(2)}, storage);
      case 1:
        return Type::Tensor(kFloat32, {std::nullopt}, storage);
      default:
        return Type::Tensor(kFloat32, {DimCode(4)}, storage);
    }
  }
  // What results, elements and registers may be; with Storage::kBorrowed what parameters may be.
  Type RandomType(int depth, Storage storage = Storage::kOwned) {
    switch (random_.Below(depth > 0 ? 12 : 7)) {
      case 0:
        return Type::Float();
      case 1:
        return Type::Bool();
      case 2:
        return Type::String();
      case 3:
        return random_.Chance(50) ? Type::DType() : Type::Shape({random_.Chance(50) ? Dim(DimCode(3)) : std::nullopt});
      case 4:
        return Type::Int();
      case 5:
        return Type::Object("any");
      case 6:
        return TensorType(storage == Storage::kBorrowed && random_.Chance(25) ? Storage::kBorrowedMut : storage);
      case 7:
      case 8: {
        std::vector<Type> elements;
        for (size_t i = random_.Below(3) + 1; i > 0; --i) elements.push_back(RandomType(depth - 1));
        return Type::Tuple(std::move(elements));
      }
      case 9:
        return Type::Optional(RandomType(depth - 1));
      default: {
        std::vector<Type> params, results;
        for (size_t i = random_.Below(2) + 1; i > 0; --i) params.push_back(RandomType(depth - 1, Storage::kBorrowed));
        if (random_.Chance(70)) results.push_back(RandomType(depth - 1));
        return Type::Closure(std::move(params), std::move(results));
      }
    }
  }

  // A type above (or below) this one.
  Type Vary(const Type& type, bool up) {
    if (up && IsReference(type) && random_.Chance(30)) return Type::Object("any");
    if (!up && IsAny(type))
      return random_.Chance(50) ? Type::String() : random_.Chance(60) ? Type::Tuple({Type::Int()}) : type;
    Type out = type;
    for (Dim& dim : out.dims) {
      if (!random_.Chance(40)) continue;
      if (up) dim.reset();
      if (!up && !dim) dim = DimCode(type.is_tensor() && type.dtype == kInt64 ? 2 : 4);
    }
    for (Type& element : out.elements) element = Vary(element, (type.kind == ValueKind::kClosure) != up);
    for (Type& result : out.results) result = Vary(result, up);
    return out;
  }

  // ---- functions

  Function MakeFunction(std::string name, const Signature& signature, bool is_exported, FunctionId id) {
    ++depth_;
    FunctionBuilder builder(std::move(name), signature, is_exported);
    Body body;
    body.builder = &builder;
    body.id = id;
    body.is_main = is_exported;
    for (size_t i = 0; i < signature.symbols.size(); ++i) body.live.push_back(builder.symbol(i));
    for (size_t i = 0; i < signature.params.size(); ++i) body.live.push_back(builder.param(i));
    body.statements = is_exported ? 14 : 3;
    while (body.statements > 0) Statement(body, 0);
    std::vector<RegisterId> results;
    for (size_t i = 0; i < signature.results.size(); ++i) {
      const Type& type = signature.results[i].type;
      // A tensor of another storage would be returned.
      const auto other = std::find_if(body.live.begin(), body.live.end(), [&](RegisterId r) {
        return type.is_tensor() && builder.type(r).is_tensor() && builder.type(r).storage != Storage::kOwned &&
               builder.type(r).dtype == type.dtype;
      });
      if (other != body.live.end() && Fault()) {
        results.push_back(*other);
      } else if (type.is_tensor() && random_.Chance(60)) {
        results.push_back(AllocOutput(body, type, static_cast<int64_t>(i)));
      } else {
        results.push_back(Make(body, type, 0));
      }
    }
    if (!results.empty() && Fault()) results.pop_back();
    builder.Return(results);
    const uint32_t last = builder.next_instruction() - 1;
    for (const auto& [entry, lives] : body.entries) {
      if (lives) builder.plan().entries[entry.value].last = last;
    }
    if (!builder.plan().arenas.empty()) builder.plan().arenas[0].size = DimCode(body.arena_bytes);
    --depth_;
    return std::move(builder).Finish();
  }

  FunctionId NewFunction(const Signature& signature) {
    const FunctionId id(static_cast<uint32_t>(program_.functions.size()));
    program_.functions.emplace_back();
    program_.functions.back().signature = signature;
    Function made = MakeFunction(StrCat({"f", id.value}), signature, false, id);
    program_.functions[id.value] = std::move(made);
    return id;
  }

  // A function that calls itself as often as its argument says.
  FunctionId RecursiveFunction() {
    const FunctionId id(static_cast<uint32_t>(program_.functions.size()));
    FunctionBuilder f(StrCat({"f", id.value}), {{}, {{"k", Type::Int()}}, {{"y", Type::Int()}}}, false);
    const RegisterId goes_on = f.AddRegister(Type::Bool()), less = f.AddRegister(Type::Int());
    const LabelId again = f.NewLabel(), done = f.NewLabel();
    f.Test(goes_on, DimCode::Binary(DimOp::kMin, DimCode::Slot(0), DimCode(3)));
    f.Branch(goes_on, again, done);
    f.Bind(again);
    f.Dim(less, DimCode::Binary(DimOp::kSub, DimCode::Binary(DimOp::kMin, DimCode::Slot(0), DimCode(3)), DimCode(1)));
    f.CallFunction({less}, id, {less});
    f.Return({less});
    f.Bind(done);
    f.Return({f.param(0)});
    program_.functions.push_back(std::move(f).Finish());
    return id;
  }

  // ---- values

  RegisterId New(Body& body, const Type& type) {
    const RegisterId id = body.builder->AddRegister(type);
    return id;
  }
  RegisterId Keep(Body& body, RegisterId id) {
    body.live.push_back(id);
    return id;
  }

  template <typename Fits>
  std::optional<RegisterId> Find(Body& body, Fits fits) {
    std::vector<RegisterId> found;
    for (const RegisterId id : body.live) {
      if (fits(body.builder->type(id))) found.push_back(id);
    }
    if (found.empty()) return std::nullopt;
    return Pick(found);
  }

  RegisterId AllocOutput(Body& body, const Type& type, int64_t result) {
    FunctionBuilder& f = *body.builder;
    Type exact = type;
    for (Dim& dim : exact.dims) {
      if (!dim) dim = DimCode(4);
    }
    const RegisterId to = New(body, exact);
    f.AllocOutput(to, result, Codes(exact));
    Fill(body, to);
    return Keep(body, to);
  }
  static std::vector<DimCode> Codes(const Type& type) {
    std::vector<DimCode> codes;
    for (const Dim& dim : type.dims) codes.push_back(dim ? *dim : DimCode(type.dtype == kInt64 ? 2 : 4));
    return codes;
  }

  // Writes a tensor, or leaves it as it is.
  void Fill(Body& body, RegisterId to) {
    FunctionBuilder& f = *body.builder;
    const Type type = f.type(to);
    if (type.dtype == kInt64) {
      if (random_.Chance(70)) f.CallBuiltin({}, Builtin::kStoreInt, {to, MakeInt(body)}, 0);
      return;
    }
    if (type.dtype != kFloat32 || type.dims.size() != 1 || !type.dims[0] || !type.dims[0]->is_constant()) return;
    const RegisterId from = Make(body, Type::Tensor(kFloat32, {DimCode(4)}, Storage::kConstant), 0);
    switch (random_.Below(4)) {
      case 0:
        return f.CallKernel(KernelId(2), {from, to}, {}, 0);
      case 1:
        return f.CopyInto(to, from, 0);
      case 2:
        return f.CallBuiltin({}, Builtin::kReshape, {to, from}, 0);
      default:
        return;
    }
  }

  RegisterId MakeInt(Body& body) { return Make(body, Type::Int(), 0); }

  RegisterId Make(Body& body, const Type& type, int nesting) {
    if (!body.live.empty() && Fault()) return Pick(body.live);  // any register
    if (random_.Chance(40)) {
      if (const auto found = Find(body, [&](const Type& t) { return IsBelow(t, type); })) return *found;
    }
    return Keep(body, MakeNew(body, type, nesting));
  }

  RegisterId MakeNew(Body& body, const Type& type, int nesting) {
    FunctionBuilder& f = *body.builder;
    switch (type.kind) {
      case ValueKind::kInt:
      case ValueKind::kFloat:
      case ValueKind::kBool:
        return MakeScalar(body, type);
      case ValueKind::kString: {
        const RegisterId to = New(body, type);
        f.ConstString(to, "text");
        return to;
      }
      case ValueKind::kDataType: {
        const RegisterId to = New(body, type);
        f.ConstDType(to, kFloat32);
        return to;
      }
      case ValueKind::kShape: {
        const RegisterId to = New(body, type);
        std::vector<DimCode> codes;
        for (const Dim& dim : type.dims) codes.push_back(dim ? *dim : DimCode::Slot(MakeInt(body).value));
        f.Shape(to, codes);
        return to;
      }
      case ValueKind::kTensor:
        return MakeTensor(body, type);
      case ValueKind::kTuple: {
        std::vector<RegisterId> elements;
        for (const Type& element : type.elements) elements.push_back(MakeElement(body, element, nesting));
        const RegisterId to = New(body, type);
        if (!elements.empty() && Fault()) elements.pop_back();
        f.Tuple(to, elements);
        return to;
      }
      case ValueKind::kOptional: {
        const RegisterId to = New(body, type);
        if (random_.Chance(30)) {
          f.None(to);
        } else {
          f.Some(to, MakeElement(body, type.elements[0], nesting));
        }
        return to;
      }
      case ValueKind::kClosure:
        return MakeClosure(body, type, nesting);
      case ValueKind::kObject: {
        const Type inner = nesting > 2 || random_.Chance(40) ? RandomType(0) : RandomType(1);
        const RegisterId from = Make(body, IsAny(inner) ? Type::String() : inner, nesting + 1);
        const RegisterId to = New(body, type);
        f.Move(to, from);
        return to;
      }
    }
    return New(body, type);
  }

  // A tensor that is not owned would outlive its memory.
  RegisterId MakeElement(Body& body, const Type& type, int nesting) {
    if (type.is_tensor() && Fault()) {
      Type constant = type;
      constant.storage = random_.Chance(50) ? Storage::kConstant : Storage::kArena;
      return Make(body, constant, nesting + 1);
    }
    return Make(body, type, nesting + 1);
  }

  RegisterId MakeScalar(Body& body, const Type& type) {
    FunctionBuilder& f = *body.builder;
    const RegisterId to = New(body, type);
    const uint32_t way = random_.Below(6);
    if (type.kind == ValueKind::kFloat) {
      const auto tensor =
          Find(body, [](const Type& t) { return t.is_tensor() && t.dtype == kFloat32 && t.rank() == 1; });
      if (way < 2 || !tensor) {
        f.ConstFloat(to, 1.5);
      } else {
        f.LoadFloat(to, *tensor, DimCode(random_.Below(2)));
      }
    } else if (type.kind == ValueKind::kBool) {
      const auto optional = Find(body, [](const Type& t) { return t.kind == ValueKind::kOptional; });
      if (way == 0 && optional) {
        f.IsSome(to, *optional);
      } else if (way == 1) {
        const RegisterId flags = New(body, Type::Tensor(DataType::Bool(), {DimCode(2)}, Storage::kConstant));
        f.ConstTensor(flags, ConstantId(2));
        f.LoadBool(to, flags, DimCode(random_.Below(2)));
      } else if (way == 2) {
        f.Test(to, DimCode::Slot(MakeInt(body).value));
      } else {
        f.ConstBool(to, random_.Chance(50));
      }
    } else {
      MakeIntInto(body, to, way);
    }
    return to;
  }

  void MakeIntInto(Body& body, RegisterId to, uint32_t way) {
    FunctionBuilder& f = *body.builder;
    const auto number = Find(body, [](const Type& t) { return t.kind == ValueKind::kInt; });
    const auto tensor = Find(body, [](const Type& t) { return t.is_tensor() && t.rank() == 1; });
    const auto whole = Find(body, [](const Type& t) { return t.is_tensor() && t.dtype == kInt64; });
    const auto shape = Find(body, [](const Type& t) { return t.kind == ValueKind::kShape && t.rank() == 1; });
    if (way == 0 && number) {
      f.Dim(to, DimCode::Binary(DimOp::kMin, DimCode::Slot(number->value), DimCode(random_.Below(5))));
    } else if (way == 1 && tensor) {
      f.TensorDim(to, *tensor, Fault() ? 1 : 0);
    } else if (way == 2 && whole) {
      f.LoadInt(to, *whole, DimCode(random_.Below(2)));
    } else if (way == 3 && shape) {
      f.ShapeDim(to, *shape, Fault() ? 1 : 0);
    } else if (way == 4 && number) {
      f.CallExternal({to}, ExternalId(0), Fault() ? std::vector<RegisterId>{} : std::vector<RegisterId>{*number});
    } else {
      f.ConstInt(to, random_.Below(6));
    }
  }

  RegisterId MakeTensor(Body& body, const Type& type) {
    FunctionBuilder& f = *body.builder;
    const RegisterId to = New(body, type);
    const std::vector<DimCode> codes = Codes(type);
    switch (type.storage) {
      case Storage::kConstant:
        f.ConstTensor(to, ConstantId(type.dtype == kInt64 ? 1 : 0));
        return to;
      case Storage::kBorrowedMut:
      case Storage::kBorrowed:  // nothing but a parameter is borrowed
        f.State(to, StateId(type.dtype == kInt64 ? 1 : 0));
        return to;
      case Storage::kArena: {
        const PlanEntryId entry = AddEntry(body, 64, true);
        f.PlanView(to, entry, codes);
        Fill(body, to);
        return to;
      }
      case Storage::kOwned:
        break;
    }
    if (random_.Chance(40)) {
      Type source = type;
      source.storage = Storage::kConstant;
      f.Copy(to, Make(body, source, 0), 0);
      return to;
    }
    f.Alloc(to, codes);
    Fill(body, to);
    return to;
  }

  PlanEntryId AddEntry(Body& body, int64_t size, bool lives) {
    FunctionBuilder& f = *body.builder;
    if (f.plan().arenas.empty()) f.plan().arenas.push_back({0, DimCode(0)});
    PlanEntry entry;
    entry.offset = DimCode(body.arena_bytes);
    entry.size = DimCode(size);
    entry.first = entry.last = f.next_instruction();
    if (!body.dead.empty() && random_.Chance(70)) {
      const PlanEntry& gone = f.plan().entries[body.dead.back().value];
      body.dead.pop_back();
      entry.offset = gone.offset;
      if (Fault()) entry.first = gone.last;
    } else if (body.arena_bytes >= size && Fault()) {
      entry.offset = DimCode(body.arena_bytes - size);
    } else {
      body.arena_bytes += size;
    }
    const PlanEntryId id = f.AddPlanEntry(entry);
    body.entries.emplace_back(id, lives && !Fault());
    return id;
  }

  RegisterId MakeClosure(Body& body, const Type& type, int nesting) {
    FunctionBuilder& f = *body.builder;
    const bool turns = Fault();
    Signature signature;
    std::vector<RegisterId> captures;
    if (depth_ < 4 && random_.Chance(30)) {
      const Type captured = RandomType(nesting > 1 ? 0 : 1);
      captures.push_back(Make(body, captured, nesting + 1));
      signature.params.push_back({"c", AsParameter(captured)});
    }
    // The function takes more and gives less than the type says, as a subtype does.
    for (const Type& param : type.elements) {
      signature.params.push_back({StrCat({"p", signature.params.size()}), depth_ < 4 ? Vary(param, !turns) : param});
      if (turns && param.is_tensor() && random_.Chance(50))
        signature.params.back().type.storage = Storage::kBorrowedMut;
    }
    for (const Type& result : type.results) {
      signature.results.push_back({StrCat({"y", signature.results.size()}), depth_ < 4 ? Vary(result, turns) : result});
    }
    const FunctionId function = NewFunction(signature);
    const RegisterId to = New(body, type);
    f.MakeClosure(to, function, captures);
    return to;
  }
  static Type AsParameter(Type type) {
    if (type.is_tensor()) type.storage = Storage::kBorrowed;
    return type;
  }

  // An argument for a parameter: tensors of any storage, of one that may be written if the parameter is.
  RegisterId MakeArgument(Body& body, const Type& param) {
    if (!param.is_tensor()) return Make(body, param, 2);
    Type type = param;
    type.dims = {DimCode(type.dtype == kInt64 ? 2 : 4)};
    const bool is_written = param.storage == Storage::kBorrowedMut && !Fault();
    constexpr Storage kStorages[] = {Storage::kOwned, Storage::kArena, Storage::kBorrowedMut, Storage::kConstant};
    type.storage = kStorages[random_.Below(is_written ? 3 : 4)];
    return Make(body, type, 2);
  }

  // ---- statements

  void Statement(Body& body, int blocks) {
    --body.statements;
    FunctionBuilder& f = *body.builder;
    switch (random_.Below(18)) {
      case 0:
        return Call(body);
      case 1:
      case 2:
      case 3:
        return CallAClosure(body);
      case 4:
        return Diamond(body, blocks);
      case 5:
        return Loop(body, blocks);
      case 6:
        return TakeApart(body);
      case 7:
        return View(body);
      case 8:
        return Release(body);
      case 9:
        return Sequence(body);
      case 10:
        return ArenaBlock(body);
      case 11:
        return WriteTensor(body);
      case 12:
        return Match(body);
      case 13:
        f.Sync(Fault() ? 1 : 0, 0);
        return;
      case 14: {
        const RegisterId text = Make(body, Type::String(), 0), condition = Make(body, Type::Bool(), 0);
        if (random_.Chance(20)) f.CallBuiltin({}, Builtin::kAssert, {condition, text}, 0);
        f.CallBuiltin({}, Builtin::kPrint, {text}, 0);
        return;
      }
      case 15: {
        const RegisterId to = New(body, Type::Int());
        const FunctionId function = RecursiveFunction();
        f.CallFunction({to}, function, {MakeInt(body)});
        Keep(body, to);
        return;
      }
      default: {
        Make(body, RandomType(depth_ > 2 ? 0 : 2), 0);
        return;
      }
    }
  }

  void Call(Body& body) {
    if (depth_ > 3) return;
    Signature signature;
    for (size_t i = random_.Below(3); i > 0; --i) {
      signature.params.push_back({StrCat({"p", i}), RandomType(depth_ > 2 ? 0 : 1, Storage::kBorrowed)});
    }
    signature.results.push_back({"y", RandomType(1)});
    const FunctionId function = NewFunction(signature);
    std::vector<RegisterId> arguments;
    for (const NamedType& param : signature.params) arguments.push_back(MakeArgument(body, param.type));
    if (!arguments.empty() && Fault()) arguments.pop_back();
    const RegisterId to = New(body, Vary(signature.results[0].type, !Fault()));
    body.builder->CallFunction({to}, function, arguments);
    Keep(body, to);
  }

  void CallAClosure(Body& body) {
    auto closure = Find(body, [](const Type& t) { return t.kind == ValueKind::kClosure; });
    if (!closure) {
      if (depth_ > 3) return;
      Type type = RandomType(1);
      type = Type::Closure({RandomType(1, Storage::kBorrowed)}, {type});
      closure = Make(body, type, 1);
      if (body.builder->type(*closure).kind != ValueKind::kClosure) return;
    }
    const Type type = body.builder->type(*closure);
    std::vector<RegisterId> arguments, results;
    for (const Type& param : type.elements) arguments.push_back(MakeArgument(body, param));
    for (const Type& result : type.results) results.push_back(New(body, Vary(result, true)));
    if (!arguments.empty() && Fault()) arguments.pop_back();
    body.builder->CallClosure(results, *closure, arguments);
    for (const RegisterId id : results) Keep(body, id);
  }

  void Block(Body& body, int blocks) {
    const size_t live = body.live.size(), scope = std::exchange(body.scope, live);
    Statement(body, blocks + 1);
    if (!Fault()) body.live.resize(live);  // what one branch alone has written
    body.scope = scope;
  }

  void Diamond(Body& body, int blocks) {
    if (blocks > 1) return;
    FunctionBuilder& f = *body.builder;
    const LabelId then_label = f.NewLabel(), else_label = f.NewLabel(), done = f.NewLabel();
    f.Branch(Make(body, Type::Bool(), 0), then_label, else_label);
    f.Bind(then_label);
    Block(body, blocks);
    f.Jump(done);
    f.Bind(else_label);
    if (random_.Chance(15)) {
      f.Fail("unreachable by the author's plan");
    } else {
      Block(body, blocks);
    }
    f.Bind(done);
  }

  // A loop of three turns.
  void Loop(Body& body, int blocks) {
    if (blocks > 1) return;
    FunctionBuilder& f = *body.builder;
    const RegisterId turn = New(body, Type::Int()), goes_on = New(body, Type::Bool());
    const LabelId head = f.NewLabel(), done = f.NewLabel();
    f.ConstInt(turn, 0);
    f.Bind(head);
    Block(body, blocks);
    f.Dim(turn, DimCode::Binary(DimOp::kAdd, DimCode::Slot(turn.value), DimCode(1)));
    f.Test(goes_on, DimCode::Binary(DimOp::kLt, DimCode::Slot(turn.value), DimCode(3)));
    f.Branch(goes_on, head, done);
    f.Bind(done);
  }

  void TakeApart(Body& body) {
    FunctionBuilder& f = *body.builder;
    const auto holder = Find(body, [](const Type& t) {
      return t.kind == ValueKind::kOptional || (t.kind == ValueKind::kTuple && !t.elements.empty());
    });
    if (!holder) return;
    const Type type = f.type(*holder);
    size_t index = random_.Below(type.elements.size());
    const Type element = type.elements[index];
    const RegisterId to = New(body, Fault() ? RandomType(1) : Vary(element, true));
    if (type.kind == ValueKind::kOptional) {
      f.Unwrap(to, *holder);
    } else {
      if (Fault()) index = (index + 1) % (type.elements.size() + 1);
      f.TupleGet(to, *holder, static_cast<int64_t>(index));
    }
    Keep(body, to);
  }

  void View(Body& body) {
    const auto from = Find(body, [](const Type& t) {
      return t.is_tensor() && t.dtype == kFloat32 && t.dims == std::vector<Dim>{DimCode(4)};
    });
    if (!from) return;
    Type type = body.builder->type(*from);
    type.dims = {DimCode(2)};
    if (Fault()) type.storage = Storage::kOwned;
    const RegisterId to = New(body, type);
    body.builder->View(to, *from, DimCode(Fault() ? 12 : 4 * random_.Below(3)), {DimCode(2)});
    Keep(body, to);
  }

  // Drops a register of the innermost block.
  void Release(Body& body) {
    if (body.live.size() <= body.scope || body.live.empty()) return;
    const size_t at = body.scope + random_.Below(body.live.size() - body.scope);
    if (body.live[at].value < 2 + (body.is_main ? 1u : 0u)) return;
    body.builder->Release(body.live[at]);
    if (!Fault()) body.live.erase(body.live.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void Sequence(Body& body) {
    FunctionBuilder& f = *body.builder;
    const RegisterId tuple = Make(body, Type::Tuple({Type::Int(), Type::Int()}), 0), length = New(body, Type::Int());
    f.CallBuiltin({length}, Builtin::kSequenceLength, {tuple}, 0);
    const RegisterId place = New(body, Type::Int()), element = New(body, Fault() ? Type::Bool() : Type::Int());
    f.ConstInt(place, static_cast<int64_t>(random_.Below(3)) - 1);
    f.CallBuiltin({element}, Builtin::kSequenceAt, {tuple, place}, 0);
    Keep(body, length);
  }

  // An entry that lives in a few instructions alone, so that later ones may lie in the same place; with an alias.
  void ArenaBlock(Body& body) {
    FunctionBuilder& f = *body.builder;
    const Type type = Type::Tensor(kFloat32, {DimCode(4)}, Storage::kArena);
    const RegisterId from = Make(body, Type::Tensor(kFloat32, {DimCode(4)}, Storage::kConstant), 0);
    const RegisterId a = New(body, type), b = New(body, type), first = New(body, Type::Float());
    const PlanEntryId root = AddEntry(body, 64, false);
    f.PlanView(a, root, {DimCode(4)});
    f.CallKernel(KernelId(2), {from, a}, {}, 0);
    PlanEntry alias = f.plan().entries[root.value];
    alias.alias_of = root;
    alias.first = f.next_instruction();
    const PlanEntryId second = f.AddPlanEntry(alias);
    f.PlanView(b, second, {DimCode(4)});
    const bool shares_without_leave = Fault();
    if (shares_without_leave) {
      const RegisterId four = New(body, Type::Int());
      f.ConstInt(four, 4);
      f.CallKernel(KernelId(0), {a, b}, {four}, 0);
    } else {
      f.CallKernel(KernelId(2), {a, b}, {}, 0);
    }
    f.LoadFloat(first, b, DimCode(1));
    const uint32_t last = f.next_instruction() - 1;
    f.plan().entries[second.value].last = last;
    f.plan().entries[root.value].last = Fault() ? last - 1 : last;
    body.dead.push_back(root);
    Keep(body, first);
  }

  void WriteTensor(Body& body) {
    FunctionBuilder& f = *body.builder;
    const auto to = Find(body, [](const Type& t) {
      return t.is_tensor() && t.dtype == kFloat32 && t.has_constant_dims() && t.dims[0] == Dim(DimCode(4)) &&
             t.storage != Storage::kConstant && t.storage != Storage::kBorrowed;
    });
    if (Fault()) {
      const RegisterId constant = New(body, Type::Tensor(kFloat32, {DimCode(4)}, Storage::kConstant));
      f.ConstTensor(constant, ConstantId(0));
      return random_.Chance(50) ? f.CallKernel(KernelId(1), {constant}, {}, 0) : f.CopyInto(constant, constant, 0);
    }
    if (to) f.CallKernel(KernelId(1), {*to}, {}, 0);
    if (body.is_main && random_.Chance(50)) {
      const RegisterId out = New(body, Type::Tensor(kFloat32, {DimCode::Slot(0)}));
      f.Alloc(out, {DimCode::Slot(0)});
      f.CallKernel(KernelId(0), {f.param(0), out}, {f.symbol(0)}, 0);
      Keep(body, out);
    }
  }

  void Match(Body& body) {
    FunctionBuilder& f = *body.builder;
    const auto from = Find(body, [](const Type& t) { return IsAny(t); });
    if (!from) return;
    const RegisterId to = New(body, random_.Chance(50) ? Type::String() : RandomType(1));
    f.Match(to, *from);
    Keep(body, to);
  }

  Random random_;
  int until_fault_;
  Program program_;
  int depth_ = 0;
};

}  // namespace

Program GenerateProgram(uint64_t seed, bool breaks_a_rule) { return Generator(seed, breaks_a_rule).Run(); }

}  // namespace ingot::vm::checked
