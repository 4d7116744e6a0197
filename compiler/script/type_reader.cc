// One function per type constructor of the text.
#include "compiler/script/type_reader.h"

#include "runtime/suggest.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {
constexpr std::string_view kNames[] = {"R.Any",    "R.Object", "R.Prim",     "R.Shape",
                                       "R.Tensor", "R.Tuple",  "R.Callable", "T.int64"};
}  // namespace

Type TypeReader::Read(const Syntax& syntax) {
  if (syntax.kind == SyntaxKind::kError) return nullptr;
  const bool is_call = syntax.kind == SyntaxKind::kCall;
  const std::string name = is_call ? CalleeName(syntax) : DottedName(syntax);
  if (name == "R.Any" || name == "R.Object" || (is_call && name == "I.StringType")) {
    if (!is_call || syntax.children.size() == 1) return Make<ObjectTypeNode>();
    return context_.Error(syntax, name + " has no arguments");
  }
  if (name == "R.Tensor") return is_call ? ReadTensor(syntax) : Type(Make<TensorTypeNode>(-1, std::nullopt));
  if (name == "R.Shape") return is_call ? ReadShape(syntax) : Type(Make<ShapeTypeNode>(-1));
  if (name == "R.Prim" && is_call) return ReadPrim(syntax);
  if (name == "R.Tuple") return is_call ? ReadTuple(syntax) : Type(Make<TupleTypeNode>(std::vector<Type>{}));
  if (name == "R.Callable") {
    return is_call ? ReadCallable(syntax) : Type(Make<CallableTypeNode>(std::nullopt, Make<ObjectTypeNode>(), false));
  }
  if (!is_call && name.starts_with("T.")) {
    const std::optional<DataType> dtype = prim_.ReadDataType(syntax);
    return dtype ? Type(Make<PrimTypeNode>(*dtype)) : Type();
  }
  if (name.empty()) return context_.Error(syntax, "expected a type, got " + Describe(syntax));
  return context_.Error(syntax, "unknown type \"" + name + "\"" + DidYouMean(name, kNames));
}

std::optional<int> TypeReader::ReadRank(const Syntax& syntax) {
  const std::optional<int64_t> rank = AsInt(syntax);
  if (rank && *rank >= -1 && *rank <= 64) return static_cast<int>(*rank);
  context_.Error(syntax, "expected a number of dimensions");
  return std::nullopt;
}

Type TypeReader::ReadTensor(const Syntax& call) {
  Arguments args(context_, call, "R.Tensor");
  const Syntax* shape_syntax = args.Get(0, "shape");
  const Syntax* dtype_syntax = args.Get(1, "dtype");
  const Syntax* device_syntax = args.Get(2, "vdevice");
  const Syntax* rank_syntax = args.Get(3, "ndim");
  if (!args.Done()) return nullptr;
  std::optional<DataType> dtype;
  if (dtype_syntax != nullptr && !IsNone(*dtype_syntax) && AsString(*dtype_syntax) != "void") {
    dtype = prim_.ReadDataType(*dtype_syntax);
    if (!dtype) return nullptr;
  }
  std::string device;
  if (device_syntax != nullptr && !IsNone(*device_syntax)) {
    const std::optional<std::string> text = AsString(*device_syntax);
    if (!text) return context_.Error(*device_syntax, "expected the name of a virtual device, such as \"cuda:0\"");
    device = *text;
  }
  std::optional<int> rank;
  if (rank_syntax != nullptr && !(rank = ReadRank(*rank_syntax))) return nullptr;
  if (shape_syntax == nullptr || IsNone(*shape_syntax)) {
    return Make<TensorTypeNode>(rank.value_or(-1), dtype, std::move(device));
  }
  if (shape_syntax->kind != SyntaxKind::kTuple && shape_syntax->kind != SyntaxKind::kList) {
    if (shape_syntax->kind == SyntaxKind::kError) return nullptr;
    return context_.Error(*shape_syntax,
                          "expected the dimensions in parentheses, such as (n, 3), got " + Describe(*shape_syntax));
  }
  std::optional<std::vector<PrimExpr>> dims = prim_.ReadDims(*shape_syntax);
  if (!dims) return nullptr;
  if (rank && *rank >= 0 && static_cast<size_t>(*rank) != dims->size()) {
    return context_.Error(*rank_syntax, "the shape has " + std::to_string(dims->size()) + " dimensions");
  }
  return Make<TensorTypeNode>(std::move(*dims), dtype, std::move(device));
}

Type TypeReader::ReadShape(const Syntax& call) {
  Arguments args(context_, call, "R.Shape");
  const Syntax* dims_syntax = args.Get(0, "values");
  const Syntax* rank_syntax = args.Get(1, "ndim");
  if (!args.Done()) return nullptr;
  if (dims_syntax != nullptr && !IsNone(*dims_syntax)) {
    std::optional<std::vector<PrimExpr>> dims = prim_.ReadDims(*dims_syntax);
    return dims ? Type(Make<ShapeTypeNode>(std::move(*dims))) : Type();
  }
  const std::optional<int> rank = rank_syntax == nullptr ? -1 : ReadRank(*rank_syntax);
  return rank ? Type(Make<ShapeTypeNode>(*rank)) : Type();
}

Type TypeReader::ReadPrim(const Syntax& call) {
  Arguments args(context_, call, "R.Prim");
  const Syntax* dtype_syntax = args.Get(0, "dtype");
  const Syntax* value_syntax = args.Keyword("value");
  if (!args.Done()) return nullptr;
  if (value_syntax != nullptr) {
    PrimExpr value =
        value_syntax->kind == SyntaxKind::kString ? prim_.ReadQuoted(*value_syntax) : prim_.Read(*value_syntax);
    return value == nullptr ? Type() : Type(Make<PrimTypeNode>(std::move(value)));
  }
  if (dtype_syntax == nullptr) return context_.Error(call, "R.Prim: expected a data type or value=");
  const std::optional<DataType> dtype = prim_.ReadDataType(*dtype_syntax);
  return dtype ? Type(Make<PrimTypeNode>(*dtype)) : Type();
}

Type TypeReader::ReadTuple(const Syntax& call) {
  std::vector<Type> fields;
  const bool in_list = call.children.size() == 2 && call[1].kind == SyntaxKind::kList;
  const Syntax& list = in_list ? call[1] : call;
  for (size_t i = in_list ? 0 : 1; i < list.children.size(); ++i) {
    Type field = Read(list[i]);
    if (field == nullptr) return nullptr;
    fields.push_back(std::move(field));
  }
  return Make<TupleTypeNode>(std::move(fields));
}

Type TypeReader::ReadCallable(const Syntax& call) {
  Arguments args(context_, call, "R.Callable");
  const Syntax* params_syntax = args.Get(0, "params");
  const Syntax* result_syntax = args.Get(1, "ret");
  const Syntax* purity_syntax = args.Get(2, "purity");
  if (!args.Done()) return nullptr;
  std::optional<std::vector<Type>> params;
  if (params_syntax != nullptr && !IsNone(*params_syntax)) {
    params.emplace();
    const bool is_list = params_syntax->kind == SyntaxKind::kTuple || params_syntax->kind == SyntaxKind::kList;
    for (size_t i = 0; i < (is_list ? params_syntax->children.size() : 1); ++i) {
      Type param = Read(is_list ? (*params_syntax)[i] : *params_syntax);
      if (param == nullptr) return nullptr;
      params->push_back(std::move(param));
    }
  }
  Type result = result_syntax == nullptr ? Type(Make<ObjectTypeNode>()) : Read(*result_syntax);
  if (result == nullptr) return nullptr;
  bool is_pure = true;
  if (purity_syntax != nullptr) {
    is_pure = purity_syntax->is_name("True");
    if (!is_pure && !purity_syntax->is_name("False")) {
      return context_.Error(*purity_syntax, "expected True or False, got " + Describe(*purity_syntax));
    }
  }
  return Make<CallableTypeNode>(std::move(params), std::move(result), is_pure);
}

}  // namespace ingot::script
