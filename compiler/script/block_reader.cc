// Blocks, buffers, attributes and threads: the part of StmtReader that reads the head of a suite (stmt_reader.h).
#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/block_util.h"
#include "compiler/script/stmt_reader.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

std::optional<IterType> IterTypeOf(std::string_view name) {
  if (name == "spatial" || name == "S") return IterType::kSpatial;
  if (name == "reduce" || name == "R") return IterType::kReduce;
  if (name == "scan") return IterType::kScan;
  if (name == "opaque") return IterType::kOpaque;
  return std::nullopt;
}

bool SameDims(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), arith::SameExpr);
}

}  // namespace

bool StmtReader::IsBlockHead(const std::string& callee) const {
  return callee == "T.where" || callee == "T.reads" || callee == "T.writes" || callee == "T.sblock_attr" ||
         callee == "T.block_attr" || callee == "T.init" || callee.starts_with("T.axis.");
}

void StmtReader::ReadBlockHead(const Statement& statement, const std::string& callee, const Syntax& call,
                               Suite& suite) {
  if (suite.block == nullptr || suite.block->is_root) {
    context_.Error(call, callee + " stands directly in a block (with T.sblock(...):)");
    if (statement.target != nullptr) DefineError(*statement.target);
    return;
  }
  BlockFrame& block = *suite.block;
  if (callee == "T.axis.remap") return ReadRemap(statement, call, block);
  if (callee.starts_with("T.axis.")) return ReadAxis(statement, callee, call, block);
  if (callee == "T.init") {
    const ScopeTable::Scope inner(scope_);
    if (block.init != nullptr) {
      context_.Error(call, "this block has an initialisation already");
      return;
    }
    block.init = ReadBody(statement.body, nullptr);
    return;
  }
  if (callee == "T.reads" || callee == "T.writes") {
    (callee == "T.reads" ? block.reads : block.writes) = ReadRegions(call);
    return;
  }
  Arguments args(context_, call, callee);
  const Syntax* argument = args.Require(0, callee == "T.where" ? "predicate" : "attrs");
  if (argument == nullptr || !args.Done()) return;
  if (callee == "T.where") {
    block.predicate = prim_.ReadCondition(*argument);
  } else if (std::optional<Attrs> attrs = prim_.ReadAttrs(*argument)) {
    block.annotations = std::move(*attrs);
  }
}

void StmtReader::AddAxis(const Syntax& target, IterType type, Range domain, PrimExpr value, BlockFrame& block) {
  const PrimVar var = MakePrimVar(std::string(target.text), domain.extent->dtype);
  IterVarNode axis(std::move(domain), var, type);
  axis.span = context_.SpanOf(target.place);
  block.iter_vars.push_back(Make<IterVarNode>(std::move(axis)));
  block.iter_values.push_back(std::move(value));
  scope_.Define(target.text, Symbol::Prim(var));
}

void StmtReader::ReadAxis(const Statement& statement, const std::string& callee, const Syntax& call,
                          BlockFrame& block) {
  const std::optional<IterType> type = IterTypeOf(std::string_view(callee).substr(7));
  if (!type || statement.target == nullptr || statement.target->kind != SyntaxKind::kName) {
    context_.Error(call, type ? "expected one name on the left of " + callee
                              : "unknown kind of axis: expected T.axis.spatial, reduce, scan, opaque or remap");
    if (statement.target != nullptr) DefineError(*statement.target);
    return;
  }
  Arguments args(context_, call, callee);
  const Syntax* domain_syntax = args.Require(0, "dom");
  const Syntax* value_syntax = args.Require(1, "binding");
  PrimExpr value = value_syntax == nullptr ? PrimExpr() : prim_.Read(*value_syntax);
  if (domain_syntax == nullptr || value == nullptr || !args.Done()) return DefineError(*statement.target);
  // Plain numbers in the domain take the dtype of the bound value.
  const DataType number_type = value->dtype.is_integral() ? value->dtype : DataType::Int(64);
  const bool pair = domain_syntax->kind == SyntaxKind::kTuple && domain_syntax->children.size() == 2;
  std::optional<Range> domain = pair ? prim_.ReadRange(&(*domain_syntax)[0], (*domain_syntax)[1], number_type)
                                     : prim_.ReadRange(nullptr, *domain_syntax, number_type);
  if (domain && value->dtype != domain->extent->dtype) value = prim_.ReadAs(*value_syntax, domain->extent->dtype);
  if (!domain || value == nullptr) return DefineError(*statement.target);
  AddAxis(*statement.target, *type, std::move(*domain), std::move(value), block);
}

void StmtReader::ReadRemap(const Statement& statement, const Syntax& call, BlockFrame& block) {
  const auto fail = [&](const Syntax& where, std::string message) {
    context_.Error(where, std::move(message));
    if (statement.target != nullptr) DefineError(*statement.target);
  };
  Arguments args(context_, call, "T.axis.remap");
  const Syntax* kinds_syntax = args.Require(0, "kinds");
  const Syntax* bindings = args.Require(1, "bindings");
  if (kinds_syntax == nullptr || bindings == nullptr || !args.Done()) {
    if (statement.target != nullptr) DefineError(*statement.target);
    return;
  }
  if (statement.target == nullptr) return fail(call, "expected names on the left of T.axis.remap");
  std::vector<const Syntax*> targets, values;
  const auto collect = [](const Syntax& list, std::vector<const Syntax*>* out) {
    if (list.kind != SyntaxKind::kTuple && list.kind != SyntaxKind::kList) return out->push_back(&list);
    for (const SyntaxPtr& item : list.children) out->push_back(item.get());
  };
  collect(*statement.target, &targets);
  collect(*bindings, &values);
  const std::string kinds = AsString(*kinds_syntax).value_or("");
  if (kinds.size() != targets.size() || kinds.size() != values.size()) {
    return fail(call, "T.axis.remap: expected as many letters as names and loop variables, got " +
                          std::to_string(kinds.size()) + ", " + std::to_string(targets.size()) + " and " +
                          std::to_string(values.size()));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    const std::optional<IterType> type = IterTypeOf(std::string_view(kinds).substr(i, 1));
    if (!type) return fail(*kinds_syntax, "T.axis.remap: expected \"S\" or \"R\", got \"" + kinds.substr(i, 1) + "\"");
    if (targets[i]->kind != SyntaxKind::kName) return fail(*targets[i], "expected a name");
    const Symbol* loop = values[i]->kind == SyntaxKind::kName ? scope_.Find(values[i]->text) : nullptr;
    if (loop == nullptr && values[i]->kind == SyntaxKind::kName) {
      prim_.UnknownName(*values[i]);
      return DefineError(*statement.target);
    }
    if (loop == nullptr || !loop->domain) {
      if (loop == nullptr || loop->kind != Symbol::Kind::kError) {
        return fail(*values[i], "T.axis.remap: expected a loop variable, got " + Describe(*values[i]));
      }
      return DefineError(*statement.target);
    }
    AddAxis(*targets[i], *type, *loop->domain, loop->prim, block);
  }
}

std::optional<std::vector<BufferRegion>> StmtReader::ReadRegions(const Syntax& call) {
  std::vector<BufferRegion> regions;
  std::vector<const Syntax*> items;
  for (size_t i = 1; i < call.children.size(); ++i) {
    const Syntax& argument = call[i];
    if (argument.kind == SyntaxKind::kList || argument.kind == SyntaxKind::kTuple) {  // T.reads([A[i], B[i]])
      for (const SyntaxPtr& item : argument.children) items.push_back(item.get());
    } else {
      items.push_back(&argument);
    }
  }
  for (const Syntax* item : items) {
    std::optional<BufferRegion> region = prim_.ReadRegion(*item);
    if (!region) return std::nullopt;
    regions.push_back(std::move(*region));
  }
  return regions;
}

void StmtReader::ReadBlock(const Statement& statement, Suite& suite) {
  const ScopeTable::Scope inner(scope_);
  Arguments args(context_, *statement.value, CalleeName(*statement.value));
  const Syntax* name_syntax = args.Get(0, "name");
  if (!args.Done()) return;
  const std::optional<std::string> name = name_syntax == nullptr ? "" : AsString(*name_syntax);
  if (!name) {
    context_.Error(*name_syntax, "expected the name of the block, got " + Describe(*name_syntax));
    return;
  }
  const size_t errors = context_.sink().count();
  BlockFrame frame;
  Stmt body = ReadBody(statement.body, &frame);
  if (body == nullptr || context_.sink().count() != errors) return;
  const bool is_root = *name == "root" && suite.is_function;
  BlockNode block(*name, std::move(frame.iter_vars), frame.reads.value_or(std::vector<BufferRegion>()),
                  frame.writes.value_or(std::vector<BufferRegion>()), std::move(body), std::move(frame.init));
  block.alloc_buffers = std::move(frame.alloc_buffers);
  block.match_buffers = std::move(frame.match_buffers);
  block.annotations = std::move(frame.annotations);
  if (!is_root && (!frame.reads || !frame.writes)) {
    arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(block);
    if (!frame.reads) block.reads = std::move(regions.reads);
    if (!frame.writes) block.writes = std::move(regions.writes);
  }
  block.span = context_.SpanOf(statement.place);
  suite.stmts.push_back(MakeStmt<BlockRealizeNode>(statement.place, std::move(frame.iter_values),
                                                   frame.predicate ? frame.predicate : BoolImm(true),
                                                   Make<BlockNode>(std::move(block))));
}

bool StmtReader::CheckBufferDefaults(Arguments& args, bool is_view) {
  bool fine = true;
  for (const std::string_view name : {"data", "buffer_type", "axis_separators", "layout"}) {
    if (is_view && name == "data") continue;
    const Syntax* syntax = args.Keyword(name);
    if (syntax == nullptr || IsNone(*syntax) || AsString(*syntax) == "" || AsString(*syntax) == "default") continue;
    const bool is_list = syntax->kind == SyntaxKind::kList || syntax->kind == SyntaxKind::kTuple;
    if (is_list && syntax->children.empty()) continue;
    context_.Error(*syntax, "the argument \"" + std::string(name) + "\" of a buffer is not supported");
    fine = false;
  }
  return fine;
}

Buffer StmtReader::ReadBufferArguments(Arguments& args, size_t first, std::string_view name, const char* scope,
                                       bool is_view) {
  const Syntax* shape_syntax = args.Require(first, "shape");
  const Syntax* dtype_syntax = args.Get(first + 1, "dtype");
  const Syntax* strides_syntax = args.Keyword("strides");
  const Syntax* offset_syntax = args.Keyword("elem_offset");
  const Syntax* scope_syntax = args.Keyword("scope");
  const Syntax* align_syntax = args.Keyword("align");
  args.Keyword("offset_factor");  // elem_offset is a multiple of it; nothing relies on it
  if (shape_syntax == nullptr || !CheckBufferDefaults(args, is_view)) return nullptr;
  std::optional<std::vector<PrimExpr>> shape = prim_.ReadDims(*shape_syntax);
  std::optional<DataType> dtype = DataType::Float(32);
  if (dtype_syntax != nullptr) dtype = prim_.ReadDataType(*dtype_syntax);
  if (!shape || !dtype) return nullptr;
  BufferNode buffer(std::string(name), *dtype, std::move(*shape), scope);
  buffer.span = context_.SpanOf(shape_syntax->place);
  if (strides_syntax != nullptr && !IsNone(*strides_syntax)) {
    std::optional<std::vector<PrimExpr>> strides = prim_.ReadDims(*strides_syntax);
    if (!strides) return nullptr;
    buffer.strides = std::move(*strides);
    if (!buffer.strides.empty() && buffer.strides.size() != buffer.shape.size()) {
      return context_.Error(*strides_syntax, "expected " + std::to_string(buffer.shape.size()) + " strides, got " +
                                                 std::to_string(buffer.strides.size()));
    }
  }
  const bool plain_zero =
      offset_syntax != nullptr && offset_syntax->kind == SyntaxKind::kInt && AsInt(*offset_syntax) == 0;
  if (offset_syntax != nullptr && !plain_zero && !IsNone(*offset_syntax)) {
    buffer.elem_offset = prim_.ReadDim(*offset_syntax);
    if (buffer.elem_offset == nullptr) return nullptr;
  }
  if (scope_syntax != nullptr) {
    const std::optional<std::string> text = AsString(*scope_syntax);
    if (!text) return context_.Error(*scope_syntax, "expected the name of a memory scope, such as \"local\"");
    buffer.scope = text->empty() ? "global" : *text;
  }
  if (align_syntax != nullptr) {
    const std::optional<int64_t> align = AsInt(*align_syntax);
    if (!align || (*align != -1 && (*align < 1 || *align > 65536 || (*align & (*align - 1)) != 0))) {
      return context_.Error(*align_syntax, "expected an alignment in bytes: a power of two up to 65536");
    }
    buffer.alignment = *align == -1 ? 64 : *align;
  }
  return Make<BufferNode>(std::move(buffer));
}

void StmtReader::ReadView(const Statement& statement, const std::string& callee, const Syntax& call) {
  const Syntax& target = *statement.target;
  Arguments args(context_, call, callee);
  const bool has_memory = std::any_of(call.children.begin(), call.children.end(), [](const SyntaxPtr& argument) {
    return argument->kind == SyntaxKind::kKeyword && argument->text == "data";
  });
  if (!has_memory) {  // a buffer without memory, which attributes alone may name
    const Buffer buffer = ReadBufferArguments(args, 0, target.text, "global", true);
    if (buffer == nullptr || !args.Done()) return DefineError(target);
    scope_.Define(target.text, Symbol::OfBuffer(buffer));
    return;
  }
  const Syntax* data = args.Require(static_cast<size_t>(-1), "data");
  if (data == nullptr) return DefineError(target);
  // A parameter that is a pointer is the buffer that is declared of it first.
  const Symbol* pointer = data->kind == SyntaxKind::kName ? scope_.Find(data->text) : nullptr;
  const auto param = std::find_if(params_.begin(), params_.end(), [&](const PrimFuncParam& candidate) {
    return pointer != nullptr && candidate.var != nullptr && candidate.var->dtype.is_handle() &&
           candidate.var.get() == pointer->prim.get();
  });
  if (param != params_.end()) {
    const Buffer buffer = ReadBufferArguments(args, 0, target.text, "global", true);
    if (buffer == nullptr || !args.Done()) return DefineError(target);
    if (param->buffer != nullptr) return DefineView(call, target, param->buffer, *buffer);
    param->buffer = buffer;
    scope_.Define(target.text, Symbol::OfBuffer(buffer));
    return;
  }
  // A.data, or the pointer that a T.allocate defined.
  const bool of_pointer = data->kind == SyntaxKind::kName && allocated_.contains(std::string(data->text));
  const bool of_buffer = data->kind == SyntaxKind::kAttribute && data->text == "data";
  const Buffer owner = of_pointer ? prim_.ReadBuffer(*data) : of_buffer ? prim_.ReadBuffer((*data)[0]) : nullptr;
  const Buffer buffer = ReadBufferArguments(args, 0, target.text, "global", true);
  if (!of_pointer && !of_buffer) {
    context_.Error(*data, callee + ": expected the memory of a buffer, such as data=A.data");
  }
  if (owner == nullptr || buffer == nullptr || !args.Done()) return DefineError(target);
  const bool is_compact = buffer->strides.empty() && buffer->elem_offset == nullptr;
  if (of_pointer && is_compact && buffer->dtype == owner->dtype && SameDims(buffer->shape, owner->shape)) {
    scope_.Define(target.text, Symbol::OfBuffer(owner));  // the allocation itself
    return;
  }
  DefineView(call, target, owner, *buffer);
}

void StmtReader::ReadViewMethod(const Statement& statement, const Syntax& call) {
  const Syntax& target = *statement.target;
  const Buffer owner = prim_.ReadBuffer(call[0][0]);
  if (owner == nullptr) return DefineError(target);
  std::vector<PrimExpr> dims;
  std::optional<DataType> dtype = prim_.DTypeOf(owner);
  for (size_t i = 1; i < call.children.size(); ++i) {
    const bool is_keyword = call[i].kind == SyntaxKind::kKeyword;
    const Syntax& value = is_keyword ? call[i][0] : call[i];
    if (value.kind == SyntaxKind::kString || (is_keyword && call[i].text == "dtype")) {
      dtype = prim_.ReadDataType(value);
      if (!dtype) return DefineError(target);
    } else if (is_keyword) {
      context_.Error(value, "view has no argument \"" + std::string(call[i].text) + "\"");
      return DefineError(target);
    } else {
      PrimExpr dim = prim_.ReadDim(value);
      if (dim == nullptr) return DefineError(target);
      dims.push_back(std::move(dim));
    }
  }
  if (dims.empty()) {  // the same dimensions, the last one for elements of another size
    dims = prim_.DimsOf(owner);
    const int64_t from = prim_.DTypeOf(owner).bits * prim_.DTypeOf(owner).lanes, to = dtype->bits * dtype->lanes;
    if (from != to && !dims.empty()) {
      dims.back() =
          arith::Analyzer().Simplify(to < from ? dims.back() * IntImm(dims.back()->dtype, from / to)
                                               : FloorDiv(dims.back(), IntImm(dims.back()->dtype, to / from)));
    }
  }
  BufferNode view(std::string(target.text), *dtype, std::move(dims), owner->scope);
  view.span = context_.SpanOf(call.place);
  DefineView(call, target, owner, std::move(view));
}

void StmtReader::DefineView(const Syntax& where, const Syntax& target, const Buffer& owner, BufferNode view) {
  const DataType dtype = view.dtype;
  if (dtype != owner->dtype) {
    const auto whole = [](DataType type) { return type.bits >= 8 && !type.is_bool() && !type.is_handle(); };
    if (!whole(dtype) || !whole(owner->dtype) || !owner->dtype.is_scalar()) {
      context_.Error(where, "a view of " + owner->dtype.ToString() + " as " + dtype.ToString() + " is not supported");
      return DefineError(target);
    }
  }
  PrimReader::ViewLayout layout{view.shape, view.strides, Int64(0), dtype};
  const bool is_compact = view.strides.empty() && view.elem_offset == nullptr;
  view.data = owner->data;
  view.dtype = owner->dtype;
  if (layout.shape.size() == 1 && is_compact && dtype == owner->dtype) {
    scope_.Define(target.text, Symbol::OfBuffer(Make<BufferNode>(std::move(view))));
    return;
  }
  const auto wide = [](PrimExpr& number) { number = Cast(DataType::Int(64), number); };
  if (view.elem_offset) layout.offset = view.elem_offset;
  if (layout.strides.empty()) {
    layout.strides.assign(layout.shape.size(), Int64(1));
    for (size_t d = layout.shape.size(); d-- > 1;) {
      layout.strides[d - 1] = layout.strides[d] * Cast(DataType::Int(64), layout.shape[d]);
    }
  }
  wide(layout.offset);
  PrimExpr size = layout.offset + 1;  // the size up to the last element
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    wide(layout.strides[d]);
    size = size + (Cast(DataType::Int(64), layout.shape[d]) - 1) * layout.strides[d];
  }
  const int64_t bits = dtype.bits * dtype.lanes, owner_bits = owner->dtype.bits * owner->dtype.lanes;
  if (bits > owner_bits) size = size * Int64(bits / owner_bits);
  if (bits < owner_bits) size = FloorDiv(size + (owner_bits / bits - 1), Int64(owner_bits / bits));
  view.shape = {arith::Analyzer().Simplify(size)};
  view.strides.clear();
  view.elem_offset = nullptr;
  const Buffer flat = Make<BufferNode>(std::move(view));
  prim_.AddView(flat, std::move(layout));
  scope_.Define(target.text, Symbol::OfBuffer(flat));
}

// P = T.allocate(extents, dtype, scope): memory by its pointer, as printers before 0.27 wrote it; T.decl_buffer(...,
// data=P) gives it dimensions.
void StmtReader::ReadAllocatePointer(const Statement& statement, const Syntax& call, Suite& suite, bool has_own_body) {
  const Syntax& target = *statement.target;
  Arguments args(context_, call, "T.allocate");
  const Syntax* extents = args.Require(0, "extents");
  const Syntax* dtype_syntax = args.Require(1, "dtype");
  const Syntax* scope_syntax = args.Get(2, "scope");
  const Syntax* condition = args.Get(3, "condition");
  const Syntax* dict = args.Get(4, "annotations");
  if (extents == nullptr || dtype_syntax == nullptr || !args.Done()) return DefineError(target);
  std::optional<std::vector<PrimExpr>> shape = prim_.ReadDims(*extents);
  const std::optional<DataType> dtype = prim_.ReadDataType(*dtype_syntax);
  const std::optional<std::string> scope = scope_syntax != nullptr ? AsString(*scope_syntax) : "global";
  std::optional<Attrs> annotations = Attrs();
  if (dict != nullptr && !IsNone(*dict)) annotations = prim_.ReadAttrs(*dict);
  if (!scope) context_.Error(*scope_syntax, "expected the name of a memory scope, such as \"local\"");
  if (condition != nullptr && !IsNone(*condition) && !condition->is_name("True") && AsInt(*condition) != 1) {
    context_.Error(*condition, "T.allocate: a condition is not supported");
    return DefineError(target);
  }
  if (!shape || !dtype || !scope || !annotations) return DefineError(target);
  BufferNode node(std::string(target.text), *dtype, *std::move(shape), scope->empty() ? "global" : *scope);
  node.span = context_.SpanOf(call.place);
  const Buffer buffer = Make<BufferNode>(std::move(node));
  allocated_.insert(std::string(target.text));
  scope_.Define(target.text, Symbol::OfBuffer(buffer));
  AddScoped(statement, suite, has_own_body, [this, place = statement.place, buffer, annotations](Stmt body) {
    return MakeStmt<AllocateNode>(place, buffer, std::move(body), *annotations);
  });
}

void StmtReader::ReadMatchBuffer(const Statement& statement, const Syntax& call, Suite& suite) {
  const Syntax& target = *statement.target;
  Arguments args(context_, call, "T.match_buffer");
  const Syntax* source = args.Require(0, "param");
  if (source == nullptr) return DefineError(target);
  const Buffer buffer = ReadBufferArguments(args, 1, target.text);
  if (buffer == nullptr || !args.Done()) return DefineError(target);
  scope_.Define(target.text, Symbol::OfBuffer(buffer));
  if (suite.is_function && source->kind == SyntaxKind::kName) {  // a parameter's buffer
    const Symbol* symbol = scope_.Find(source->text);
    const auto param = std::find_if(params_.begin(), params_.end(), [&](const PrimFuncParam& candidate) {
      return symbol != nullptr && candidate.var != nullptr && candidate.var.get() == symbol->prim.get();
    });
    if (param == params_.end() || !param->var->dtype.is_handle()) {
      if (symbol != nullptr && symbol->kind == Symbol::Kind::kError) return;
      context_.Error(*source, "expected a parameter of type T.handle, got " + Describe(*source));
    } else if (param->buffer != nullptr) {
      context_.Error(*source,
                     "\"" + std::string(source->text) + "\" is the buffer \"" + param->buffer->name + "\" already");
    } else {
      param->buffer = buffer;
    }
    return;
  }
  if (suite.block == nullptr || suite.block->is_root) {
    context_.Error(call, "T.match_buffer stands at the head of a function or of a block");
    return;
  }
  std::optional<BufferRegion> region = prim_.ReadRegion(*source);
  if (region) suite.block->match_buffers.push_back({buffer, std::move(*region)});
}

void StmtReader::ReadAllocate(const Statement& statement, const std::string& callee, const Syntax& call, Suite& suite,
                              bool has_own_body) {
  const Syntax& target = *statement.target;
  const char* scope = callee == "T.alloc_local" ? "local" : callee == "T.alloc_shared" ? "shared" : "global";
  const bool of_block =
      callee == "T.sblock_alloc_buffer" || (callee == "T.alloc_buffer" && old_dialect_ && suite.block != nullptr);
  Arguments args(context_, call, callee);
  const Buffer buffer = ReadBufferArguments(args, 0, target.text, scope);
  const Syntax* dict = of_block ? nullptr : args.Keyword("annotations");
  if (buffer == nullptr || !args.Done()) return DefineError(target);
  Attrs annotations;
  if (dict != nullptr) {
    std::optional<Attrs> attrs = prim_.ReadAttrs(*dict);
    if (!attrs) return DefineError(target);
    annotations = std::move(*attrs);
  }
  scope_.Define(target.text, Symbol::OfBuffer(buffer));
  if (!of_block) {
    AddScoped(statement, suite, has_own_body, [this, place = statement.place, buffer, annotations](Stmt body) {
      return MakeStmt<AllocateNode>(place, buffer, std::move(body), annotations);
    });
  } else if (suite.block == nullptr) {
    context_.Error(call, callee + " stands at the head of a block; inside of loops it is T.alloc_buffer");
  } else {
    suite.block->alloc_buffers.push_back(buffer);
  }
}

void StmtReader::ReadAttribute(const Statement& statement, const Syntax& call, Suite& suite, bool has_own_body) {
  Arguments args(context_, call, "T.attr");
  const Syntax* node_syntax = args.Require(0, "node");
  if (node_syntax == nullptr) return;
  if (node_syntax->kind == SyntaxKind::kDict) {  // T.attr({"pragma_x": 1}): an attribute of no node
    std::optional<Attrs> attrs = prim_.ReadAttrs(*node_syntax);
    if (!attrs || !args.Done()) return;
    AddScoped(
        statement, suite, has_own_body,
        [this, place = statement.place, attrs](Stmt body) {
          for (auto item = attrs->items().rbegin(); item != attrs->items().rend(); ++item) {
            body = MakeStmt<AttrStmtNode>(place, ir::Ref<Node>(), item->first, item->second, std::move(body));
          }
          return body;
        },
        attrs->items().size());
    return;
  }
  const Syntax* key_syntax = args.Require(1, "attr_key");
  const Syntax* value_syntax = args.Require(2, "value");
  if (key_syntax == nullptr || value_syntax == nullptr || !args.Done()) return;
  if (CalleeName(*node_syntax) == "T.comm_reducer") {  // whose value, a null pointer, says nothing
    const PrimExpr reducer = prim_.Read(*node_syntax);
    const std::optional<std::string> key = AsString(*key_syntax);
    if (reducer == nullptr || !key) return;
    AddScoped(statement, suite, has_own_body, [this, place = statement.place, key, reducer](Stmt body) {
      return MakeStmt<AttrStmtNode>(place, ir::Ref<Node>(), *key, AttrValue(reducer), std::move(body));
    });
    return;
  }
  ir::Ref<Node> node;
  const Symbol* symbol = node_syntax->kind == SyntaxKind::kName ? scope_.Find(node_syntax->text) : nullptr;
  if (symbol != nullptr && symbol->kind == Symbol::Kind::kBuffer) {
    node = symbol->buffer;
  } else if (!IsNone(*node_syntax) && AsInt(*node_syntax) != 0) {
    const PrimExpr expr = prim_.Read(*node_syntax);
    if (expr == nullptr) return;
    node = expr;
  }
  const std::optional<std::string> key = AsString(*key_syntax);
  std::optional<AttrValue> value = prim_.ReadAttr(*value_syntax);
  if (!key) context_.Error(*key_syntax, "expected the attribute's name, got " + Describe(*key_syntax));
  if (!key || !value) return;
  AddScoped(statement, suite, has_own_body, [this, place = statement.place, node, key, value](Stmt body) {
    return MakeStmt<AttrStmtNode>(place, node, *key, *value, std::move(body));
  });
}

void StmtReader::ReadLaunchThread(const Statement& statement, const Syntax& call, Suite& suite, bool has_own_body) {
  Arguments args(context_, call, "T.launch_thread");
  const Syntax* thread = args.Require(0, "thread");
  const Syntax* extent_syntax = args.Require(1, "extent");
  const auto fail = [&] {
    if (statement.target != nullptr) DefineError(*statement.target);
  };
  if (thread == nullptr || extent_syntax == nullptr || !args.Done()) return fail();
  const std::optional<Range> domain = prim_.ReadRange(nullptr, *extent_syntax);
  if (!domain) return fail();
  PrimVar var;
  std::string tag;
  if (const std::optional<std::string> text = AsString(*thread)) {
    if (statement.target == nullptr || statement.target->kind != SyntaxKind::kName) {
      context_.Error(call, "expected a name: tx = T.launch_thread(\"threadIdx.x\", ...)");
      return;
    }
    tag = *text;
    var = MakePrimVar(std::string(statement.target->text), domain->extent->dtype);
    Symbol symbol = Symbol::Prim(var);
    symbol.domain = *domain;
    scope_.Define(statement.target->text, std::move(symbol));
  } else {  // a variable of T.env_thread
    const PrimExpr expr = prim_.Read(*thread);
    if (expr == nullptr) return fail();
    const auto known = env_threads_.find(expr.get());
    if (known == env_threads_.end()) {
      context_.Error(*thread, "expected the name of a thread axis, such as \"threadIdx.x\"");
      return fail();
    }
    tag = known->second;
    var = AsRef<PrimVarNode>(expr);
  }
  const ir::Ref<Node> axis = Make<IterVarNode>(*domain, var, IterType::kThread, tag);
  AddScoped(statement, suite, has_own_body, [this, place = statement.place, axis, extent = domain->extent](Stmt body) {
    return MakeStmt<AttrStmtNode>(place, axis, "thread_extent", AttrValue(extent), std::move(body));
  });
}

}  // namespace ingot::script
