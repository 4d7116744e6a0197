#include "tests/compiler/script/random_modules.h"

#include <algorithm>
#include <cstring>

#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
#include "runtime/check.h"
#include "tests/compiler/script/random_prim_func.h"

namespace ingot::script::testing {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

const DataType kF32 = DataType::Float(32);

class GraphGenerator {
 public:
  GraphGenerator(RandomSource& random, IRModule& module) : random_(random), module_(module) {}

  void AddFunction(const std::string& name) {
    std::vector<Var> params = Params();
    const bool is_pure = random_.Chance(60);
    // The function may call itself, so its type is made before its body.
    const Type result = Make<TensorTypeNode>(-1, kF32);
    std::vector<Type> types;
    for (const Var& param : params) types.push_back(param->type);
    const GlobalVar var = Make<GlobalVarNode>(
        name, Make<CallableTypeNode>(std::move(types), random_.Chance(50) ? result : Type(Any()), is_pure));
    self_ = var;
    params_ = params;
    const SeqExpr body = Sequence(is_pure, 0);
    const Type declared = As<CallableTypeNode>(var->type)->result;
    SeqExprNode finished = *body;
    if (declared->kind == TypeKind::kTensor) finished.body = TensorValue();
    module_.Set(var, Make<FunctionNode>(std::move(params), Make<SeqExprNode>(std::move(finished)), declared, is_pure,
                                        random_.Chance(30), random_.Attributes()));
  }

 private:
  // The bindings of one sequence while it grows.
  struct Builder {
    std::vector<BindingBlock> blocks;
    bool is_pure;
    int depth;
  };

  static Type Any() { return Make<ObjectTypeNode>(); }
  Type TensorType() {
    if (random_.Chance(15)) return Make<TensorTypeNode>(static_cast<int>(random_.Below(4)) - 1, kF32);
    if (random_.Chance(5)) return Make<TensorTypeNode>(-1, std::nullopt);
    std::vector<PrimExpr> dims;
    if (!symbols_.empty() && random_.Chance(50)) dims.push_back(random_.Pick(symbols_));
    for (int64_t i = random_.Below(3); i > 0; --i) dims.push_back(Int64(1 + random_.Below(8)));
    return Make<TensorTypeNode>(std::move(dims), kF32, random_.Chance(5) ? "cuda:0" : "");
  }
  Type ParamType(int depth) {
    switch (random_.Below(depth < 2 ? 12 : 8)) {
      case 0:
        return Any();
      case 1:
        if (random_.Chance(50)) return Make<ShapeTypeNode>(static_cast<int>(random_.Below(4)) - 1);
        return Make<ShapeTypeNode>(std::vector<PrimExpr>{RandomDim(random_, symbols_), Int64(2)});
      case 2:
        if (symbols_.empty() || random_.Chance(50))
          return Make<PrimTypeNode>(random_.Pick<DataType>({DataType::Int(64), kF32}));
        return Make<PrimTypeNode>(PrimExpr(random_.Pick(symbols_)));
      case 8: {
        std::vector<Type> fields;
        for (int64_t i = random_.Below(3); i > 0; --i) fields.push_back(ParamType(depth + 1));
        return Make<TupleTypeNode>(std::move(fields));
      }
      case 9: {
        if (random_.Chance(30)) return Make<CallableTypeNode>(std::nullopt, Any(), random_.Chance(50));
        std::vector<Type> params;
        for (int64_t i = random_.Below(3); i > 0; --i) params.push_back(ParamType(depth + 1));
        return Make<CallableTypeNode>(std::move(params), ParamType(depth + 1), random_.Chance(50));
      }
      default:
        return TensorType();
    }
  }
  Var NewVar(Type type, bool dataflow = false) { return Make<VarNode>(random_.Name(), std::move(type), dataflow); }

  std::vector<Var> Params() {
    for (int64_t i = random_.Below(3); i > 0; --i) symbols_.push_back(MakePrimVar(random_.Name()));
    std::vector<Var> params;
    // The first parameter's dims bind every symbol.
    std::vector<PrimExpr> dims(symbols_.begin(), symbols_.end());
    params.push_back(NewVar(Make<TensorTypeNode>(std::move(dims), kF32)));
    if (random_.Chance(20)) {
      params.push_back(NewVar(Make<TensorTypeNode>(
          std::vector<PrimExpr>{RandomDim(random_, symbols_), RandomDim(random_, symbols_)}, DataType::Int(64))));
    }
    for (int64_t i = random_.Below(4); i > 0; --i) params.push_back(NewVar(ParamType(0)));
    values_.insert(values_.end(), params.begin(), params.end());
    return params;
  }

  // ---- Values
  template <typename Predicate>
  Expr Find(Predicate predicate) {
    std::vector<Expr> fitting;
    for (const Var& var : values_) {
      if (predicate(var)) fitting.push_back(var);
    }
    return fitting.empty() ? Expr() : random_.Pick(fitting);
  }
  Expr TensorValue() {
    return Find([](const Var& var) {
      const auto* type = As<TensorTypeNode>(var->type);
      return type != nullptr && type->dtype == kF32;
    });
  }
  Expr Constant() {
    if (random_.Chance(15)) {  // large: in the side file
      std::vector<std::byte> bytes(static_cast<size_t>(20 + random_.Below(9)), std::byte{3});
      const auto size = static_cast<int64_t>(bytes.size());
      return Make<ConstantNode>(ConstantData::FromBytes(DataType::Int(8), {size}, std::move(bytes)), random_.Text());
    }
    const int64_t rows = random_.Below(3);
    std::vector<int64_t> dims = random_.Chance(30) ? std::vector<int64_t>{} : std::vector<int64_t>{rows, 2};
    std::vector<float> elements(dims.empty() ? 1 : static_cast<size_t>(rows) * 2);
    for (float& element : elements) element = static_cast<float>(random_.Float());
    std::vector<std::byte> bytes(elements.size() * sizeof(float));
    if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
    if (rows == 0 && !dims.empty()) dims = {0};
    return Make<ConstantNode>(ConstantData::FromBytes(kF32, std::move(dims), std::move(bytes)),
                              random_.Chance(50) ? random_.Text() : "");
  }
  Expr Leaf(int depth = 0) {
    switch (random_.Below(depth < 2 ? 10 : 6)) {
      case 0:
        return Constant();
      case 1:
        return Make<ShapeExprNode>(std::vector<PrimExpr>{RandomDim(random_, symbols_), Int64(3)});
      case 2:
        return Make<PrimValueNode>(random_.Chance(50) ? RandomDim(random_, symbols_) : FloatImm(kF32, random_.Float()));
      case 3:
        return Make<StringValueNode>(random_.Text());
      case 4:
        return Make<DataTypeValueNode>(random_.Pick<DataType>({kF32, DataType::Int(4), DataType::Bool()}));
      case 6: {
        std::vector<Expr> fields;
        std::vector<Type> types;
        for (int64_t i = random_.Below(4); i > 0; --i) {
          fields.push_back(Leaf(depth + 1));
          types.push_back(fields.back()->type);
        }
        return Make<TupleNode>(std::move(fields), Make<TupleTypeNode>(std::move(types)));
      }
      default:
        return random_.Pick(values_);
    }
  }
  Expr Row(std::string_view name, std::vector<Expr> args, Attrs attrs = {}, std::vector<Type> types = {}) {
    const Result<ir::Call> call = op::MakeCall(name, std::move(args), std::move(attrs), std::move(types));
    return call.ok() ? Expr(*call) : Expr();  // a value that does not fit: another draw
  }
  Expr Typed(CallNode call) {
    const Result<Type> type = op::InferCallType(IRModule(), Make<CallNode>(call));
    if (!type.ok()) return nullptr;
    call.type = *type;
    return Make<CallNode>(std::move(call));
  }
  Expr ArgumentTuple() { return ArgumentTuple(1 + random_.Below(2)); }
  Expr ArgumentTuple(int64_t count) {
    std::vector<Expr> fields;
    std::vector<Type> types;
    for (int64_t i = count; i > 0; --i) {
      fields.push_back(random_.Pick(values_));
      types.push_back(fields.back()->type);
    }
    return Make<TupleNode>(std::move(fields), Make<TupleTypeNode>(std::move(types)));
  }
  GlobalVar AnyPrimFunc() {
    std::vector<GlobalVar> vars;
    for (const IRModule::Entry& entry : module_.functions()) {
      if (entry.function->kind == ExprKind::kPrimFunc) vars.push_back(entry.var);
    }
    return random_.Pick(vars);
  }
  int64_t NumParams(const GlobalVar& prim_func) const {
    return std::ssize(module_.FindPrimFunc(prim_func->name)->params);
  }
  Type OutType() { return Make<TensorTypeNode>(std::vector<PrimExpr>{RandomDim(random_, symbols_), Int64(2)}, kF32); }

  // Draws a value to bind; null when the draw does not fit.
  Expr Value(const Builder& builder, bool dataflow) {
    const Expr x = TensorValue();
    if (x == nullptr) return Leaf();
    switch (random_.Below(16)) {
      case 0:
        return Row(random_.Pick<std::string>({"exp", "nn.relu", "negative", "tanh"}), {x});
      case 1:
        return Row(random_.Pick<std::string>({"add", "multiply", "maximum"}),
                   {x, random_.Chance(60) ? x : TensorValue()});
      case 2:
        return Row("nn.softmax", {x}, {{"axis", -1}});
      case 3:
        return Row("sum", {x}, {{"axis", AttrValue::Ints({0})}, {"keepdims", random_.Chance(50)}});
      case 4:
        return Row("astype", {x}, {{"dtype", DataType::Float(16)}});
      case 5: {
        // Outputs, a number, and the rest of the function's parameters are inputs.
        const GlobalVar function = AnyPrimFunc();
        int64_t inputs = NumParams(function) - 1;
        if (inputs < 0) return nullptr;
        std::vector<Type> types = {OutType()};
        if (inputs > 0 && random_.Chance(30)) {
          types.push_back(OutType());
          --inputs;
        }
        std::vector<PrimExpr> numbers;
        if (inputs > 0 && random_.Chance(30)) {
          numbers.push_back(RandomDim(random_, symbols_));
          --inputs;
        }
        std::vector<Expr> args = {function, ArgumentTuple(inputs)};
        if (!numbers.empty()) args.push_back(Make<ShapeExprNode>(std::move(numbers)));
        return Row("call_tir", std::move(args), {}, std::move(types));
      }
      case 6: {
        const GlobalVar function = AnyPrimFunc();
        const int64_t inputs = NumParams(function);
        if (inputs == 0) return nullptr;
        return Row("call_tir_inplace", {function, ArgumentTuple(inputs)}, {{"inplace_indices", AttrValue::Ints({0})}},
                   {OutType()});
      }
      case 7:
        return Row("call_dps_packed", {Make<ExternFuncNode>(random_.Text()), ArgumentTuple()}, {}, {OutType()});
      case 8:
        return Row("call_pure_packed", {Make<ExternFuncNode>(random_.Text()), Leaf(), Leaf()}, {}, {OutType()});
      case 9: {
        if (builder.is_pure || dataflow) return nullptr;
        CallNode call(Make<ExternFuncNode>("external.function"), {Leaf(), Leaf()}, random_.Attributes(), {OutType()});
        return Typed(std::move(call));
      }
      case 10: {
        const Expr tuple = Find([](const Var& var) {
          const auto* type = As<TupleTypeNode>(var->type);
          return type != nullptr && !type->fields.empty();
        });
        if (tuple == nullptr) return nullptr;
        const auto& fields = As<TupleTypeNode>(tuple->type)->fields;
        const int64_t index = random_.Below(std::ssize(fields));
        return Make<TupleGetItemNode>(tuple, index, fields[static_cast<size_t>(index)]);
      }
      case 11: {  // itself
        const auto* type = As<CallableTypeNode>(self_->type);
        if (!type->is_pure && (builder.is_pure || dataflow)) return nullptr;
        return Typed(CallNode(self_, {params_.begin(), params_.end()}));
      }
      case 12: {
        const Expr closure = Find([&](const Var& var) {
          const auto* type = As<CallableTypeNode>(var->type);
          return type != nullptr && type->params && (type->is_pure || !(builder.is_pure || dataflow));
        });
        if (closure == nullptr) return nullptr;
        std::vector<Expr> args(As<CallableTypeNode>(closure->type)->params->size(), x);
        return Typed(CallNode(closure, std::move(args)));
      }
      case 13:
        return Row("shape_of", {x});
      default:
        return Leaf();
    }
  }

  // ---- Bindings
  // Removes the values and symbols of an inner scope when the scope ends.
  class Scope {
   public:
    explicit Scope(GraphGenerator& g) : g_(g), values_(g.values_.size()), symbols_(g.symbols_.size()) {}
    ~Scope() {
      g_.values_.resize(values_);
      g_.symbols_.resize(symbols_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GraphGenerator& g_;
    const size_t values_, symbols_;
  };

  void Add(Builder& builder, Binding binding) {
    values_.push_back(binding.var);
    builder.blocks.back().bindings.push_back(std::move(binding));
  }
  void OpenBlock(Builder& builder, bool dataflow) {
    if (dataflow || builder.blocks.empty() || builder.blocks.back().is_dataflow)
      builder.blocks.push_back({{}, dataflow});
  }
  void MatchCast(Builder& builder, bool dataflow_var) {
    const Expr x = TensorValue();
    if (x == nullptr) return;
    symbols_.push_back(MakePrimVar(random_.Name()));
    const Type type = Make<TensorTypeNode>(std::vector<PrimExpr>{symbols_.back(), Int64(2)}, kF32);
    Add(builder, {NewVar(type, dataflow_var), x, type, {}});
  }
  void Dataflow(Builder& builder) {
    OpenBlock(builder, true);
    const size_t first = values_.size();
    for (int64_t i = 1 + random_.Below(5); i > 0; --i) {
      const bool inner = i > 1 && random_.Chance(70);
      if (random_.Chance(10)) {
        MatchCast(builder, inner);
      } else if (Expr value = Value(builder, true); value != nullptr) {
        Type type = value->type;
        Add(builder, {NewVar(std::move(type), inner), std::move(value), nullptr, {}});
      }
    }
    std::erase_if(values_, [&, i = size_t{0}](const Var& var) mutable { return i++ >= first && var->is_dataflow; });
    if (builder.blocks.back().bindings.empty()) builder.blocks.pop_back();
  }
  void Branch(Builder& builder) {
    const Expr x = TensorValue();
    if (x == nullptr) return;
    const Expr condition =
        random_.Chance(50) ? Expr(Make<PrimValueNode>(RandomDim(random_, symbols_) < Int64(3)))
                           : Expr(Make<ConstantNode>(ConstantData::FromBytes(DataType::Bool(), {}, {std::byte{1}})));
    const auto side = [&] {
      const Scope scope(*this);
      SeqExprNode seq = *Sequence(builder.is_pure, builder.depth + 1);
      seq.body = x;
      seq.type = x->type;
      return Make<SeqExprNode>(std::move(seq));
    };
    SeqExpr yes = side(), no = side();
    OpenBlock(builder, false);
    Expr value = Make<IfNode>(condition, std::move(yes), std::move(no), x->type);
    Add(builder, {NewVar(x->type), std::move(value), nullptr, {}});
  }
  void Closure(Builder& builder) {
    const bool is_pure = random_.Chance(70);
    std::vector<Var> params;
    Type result;
    Function function;
    Var self;
    {
      const Scope scope(*this);
      std::vector<Type> types;
      for (int64_t i = random_.Below(3); i > 0; --i) {
        params.push_back(NewVar(TensorType()));
        types.push_back(params.back()->type);
      }
      self = NewVar(Make<CallableTypeNode>(std::move(types), Any(), is_pure));
      values_.push_back(self);
      values_.insert(values_.end(), params.begin(), params.end());
      const SeqExpr body = Sequence(is_pure, builder.depth + 1);
      function = Make<FunctionNode>(std::move(params), body, Any(), is_pure, false, random_.Attributes());
    }
    OpenBlock(builder, false);
    Add(builder, {self, function, nullptr, {}});
  }
  SeqExpr Sequence(bool is_pure, int depth) {
    Builder builder{{}, is_pure, depth};
    for (int64_t i = 1 + random_.Below(4); i > 0; --i) {
      const int64_t kind = random_.Below(depth < 2 ? 10 : 8);
      if (kind < 4) {
        Dataflow(builder);
      } else if (kind == 8) {
        Branch(builder);
      } else if (kind == 9) {
        Closure(builder);
      } else {
        OpenBlock(builder, false);
        if (random_.Chance(10)) MatchCast(builder, false);
        if (Expr value = Value(builder, false); value != nullptr) {
          Type type = value->type;
          Add(builder, {NewVar(std::move(type)), std::move(value), nullptr, {}});
        }
        if (builder.blocks.back().bindings.empty()) builder.blocks.pop_back();
      }
    }
    return Make<SeqExprNode>(std::move(builder.blocks), Leaf());
  }

  RandomSource& random_;
  IRModule& module_;
  GlobalVar self_;
  std::vector<Var> params_;
  std::vector<Var> values_;
  std::vector<PrimVar> symbols_;
};

}  // namespace

IRModule RandomModule(uint64_t seed) {
  RandomSource random(seed);
  IRModule module;
  module.SetAttrs(random.Attributes());
  for (int64_t i = 1 + random.Below(2); i > 0; --i) module.Add("kernel", RandomPrimFunc(random));
  GraphGenerator(random, module).AddFunction("main");
  if (random.Chance(50)) GraphGenerator(random, module).AddFunction("other");
  return module;
}

}  // namespace ingot::script::testing
