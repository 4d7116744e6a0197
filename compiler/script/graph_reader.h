// GraphReader: reads the syntax of one graph function to a Function in A-normal form: nested calls get bindings of
// their own. Types that the text leaves out are inferred, and those that it states are checked against the inferred
// ones.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/script/constant_store.h"
#include "compiler/script/prim_reader.h"
#include "compiler/script/tvm_metadata.h"
#include "compiler/script/type_reader.h"

namespace ingot::script {

// The functions of the module under their names, known before any body is read.
struct ModuleFunction {
  ir::GlobalVar var;
  bool is_prim_func = false;
};
struct ModuleHead {
  std::unordered_map<std::string, ModuleFunction> functions;
  std::unordered_map<std::string, ir::PrimFunc> tensor_functions;  // read before graph functions are
  // Private tensor functions that return a number: a call of one is what it returns.
  std::unordered_map<std::string, const Statement*> number_functions;
  ScopeTable::ModuleSymbols symbols;
  std::string class_name = "Module";    // the module's class, which cls refers to
  std::optional<TvmMetadata> metadata;  // the constants of a metadata section above the module
  bool has_bad_metadata = false;        // whether an error in it was reported; then uses are silent
};

// How a type that the text states goes with the inferred one: as it is, after a check at run time, or not at all.
enum class TypeFit : uint8_t { kFits, kNarrower, kDiffers };
TypeFit FitType(const ir::Type& declared, const ir::Type& inferred);

struct CompositeOperator;
class CompositeMaker;

class GraphReader {
 public:
  GraphReader(ReadContext& context, const ModuleHead& head, const ConstantStore* constants)
      : context_(context),
        head_(head),
        constants_(constants),
        scope_(&head.symbols),
        prim_(context, scope_),
        types_(prim_) {}
  // Returns null after a report.
  ir::Function ReadFunction(const Statement& def, bool is_pure, bool is_private);
  // Returns the type that calls see: parameters as declared, the result as declared or Object.
  ir::Type ReadSignature(const Statement& def, bool is_pure);

 private:
  // Collects the bindings of one scope.
  struct Builder {
    std::vector<ir::BindingBlock> blocks;
    bool in_dataflow = false;
    const std::unordered_set<std::string_view>* outputs = nullptr;  // names that leave the dataflow block
    bool returned = false;
  };

  // The parameters that are numbers, n: T.int64, of which dimensions are made: in the signature, or in shapes and types of
  // the body. Each is a symbolic variable, too, which its name means there.
  using Numbers = std::unordered_map<std::string_view, ir::PrimVar>;
  Numbers DeclareNumbers(const Statement& def);

  void BindSymbols(const ir::Type& type);
  ir::Type ReadParamType(const Parameter& param, const Numbers& numbers);
  ir::Var ReadParam(const Parameter& param, const Numbers& numbers);
  ir::Function ReadFunctionBody(const Statement& def, std::vector<ir::Var> params, ir::Type declared, bool is_pure,
                                bool is_private);
  void ReadStatements(const std::vector<Statement>& body, size_t begin, size_t end, Builder& builder);
  void ReadStatement(const Statement& statement, Builder& builder);
  void ReadBinding(const Statement& statement, Builder& builder);
  bool ReadDeclaration(const Statement& statement);  // m = T.int64(), cls = Module
  void DeclareSymbol(const Syntax& target, DataType dtype);
  void ReadMatchCast(const Statement& statement, Builder& builder);
  void ReadDataflow(const Statement& statement, Builder& builder);
  void ReadIf(const Statement& statement, Builder& builder);
  ir::SeqExpr ReadBranch(const std::vector<Statement>& body, std::string_view name, const ir::Type& declared);
  void ReadNested(const Statement& def, Builder& builder);
  void DefineError(const Syntax& target);
  void ReadUnpacking(const Statement& statement, Builder& builder);

  // Binds a value to a new variable, and checks the declared type (null: none is declared).
  ir::Var Bind(std::string_view name, ir::Expr value, const ir::Type& declared, Place place, Builder& builder,
               std::string_view comment = "");
  void AddBinding(ir::Binding binding, Builder& builder);
  // Returns the value as an argument: a value that is no leaf is bound to a variable.
  ir::Expr Leaf(ir::Expr value, Place place, Builder& builder);
  bool CheckType(const ir::Type& declared, const ir::Type& inferred, Place place);
  ir::Span SpanOf(Place place, std::string_view comment) const;

  // ---- Values (value_reader.cc)
  ir::Expr ReadValue(const Syntax& syntax, Builder& builder);
  ir::Expr ReadArgument(const Syntax& syntax, Builder& builder);
  ir::Expr ReadName(const Syntax& syntax);
  ir::Expr ReadAttributeValue(const Syntax& syntax);
  ir::Expr ReadSubscript(const Syntax& syntax, Builder& builder);
  ir::Expr ReadTuple(const Syntax& syntax, Builder& builder);
  ir::Expr MakeTuple(const Syntax& syntax, std::vector<ir::Expr> fields);
  ir::Expr ReadMetadata(const Syntax& syntax);
  ir::Expr ReadTvmMetadata(const Syntax& syntax, const std::string& type, int64_t index);
  ir::Expr ReadConst(const Syntax& call);
  ir::Expr ReadCall(const Syntax& call, Builder& builder);
  ir::Expr ReadOpCall(const Syntax& call, const std::string& name, Builder& builder);
  ir::Expr ReadExternCall(const Syntax& call, Builder& builder);
  ir::Expr ReadFunctionCall(const Syntax& call, ir::Expr callee, Builder& builder);
  const Statement* FindNumberFunction(const Syntax& call);
  ir::Expr ReadNumberCall(const Syntax& call, const Statement& def);
  ir::Expr FinishCall(const Syntax& call, ir::CallNode node);
  ir::Expr ReadPrimValue(const Syntax& syntax);
  std::optional<std::vector<ir::Type>> ReadOutTypes(const Syntax& syntax, bool one_is_itself);
  bool IsScalarSyntax(const Syntax& syntax);

  // ---- What TVM writes and other operators express (composite_calls.cc)
  // Reads a view with other dimensions over the same elements; anything else that TVM's views can do is refused.
  ir::Expr ReadMemoryView(const Syntax& call, const std::string& name, Builder& builder);
  ir::Expr ReadRetypedMemory(const Syntax& call, const std::string& name, const ir::Expr& value, const ir::Expr& shape,
                             DataType dtype, int64_t offset_bytes, Builder& builder);
  // What the maker made, or null after a report.
  ir::Expr Taken(const Syntax& call, const std::string& name, CompositeMaker& maker, ir::Expr value);
  ir::Expr ReadPartOfMemory(const Syntax& call, const std::string& name, const ir::Expr& value, const ir::Expr& shape,
                            int64_t offset_bytes, Builder& builder);
  ir::Expr ReadComposite(const Syntax& call, const CompositeOperator& composite, Builder& builder);
  // Makes arguments and attributes that TVM takes and the operator here does not into those that it does. Returns the
  // operator's name; empty after a report.
  std::string AdaptCall(const Syntax& call, const std::string& name, std::vector<ir::Expr>& values, ir::AttrDict& attrs,
                        Builder& builder);
  ir::Expr ReadLayoutTransform(const Syntax& call, Builder& builder);
  // Reads the value that means "absent" in R.memory.view: an empty tuple.
  ir::Expr ReadNullValue(const Syntax& call);
  bool NamesValue(const Syntax& syntax);
  ir::Expr ReadOperator(const Syntax& syntax, Builder& builder);
  // Makes scalars among the operands of element-wise arithmetic tensors of one element: in TVM their shape is (1,).
  bool ScalarsToTensors(const Syntax& call, std::vector<ir::Expr>& operands, Builder& builder);
  // Binds a call of an operator to a variable, and returns the variable; null after a report.
  ir::Expr Emit(const Syntax& syntax, std::string_view name, std::vector<ir::Expr> args, ir::Attrs attrs,
                Builder& builder);
  // ---- What TVM's later passes make of memory and dimensions (memory_calls.cc)
  void CountStorages(const std::vector<Statement>& body);
  static bool IsAllocation(std::string_view name);  // without "R."
  ir::Expr ReadAllocation(const Syntax& call, const std::string& name, Builder& builder);
  ir::Expr ReadShapeArgument(const Syntax& syntax, std::string_view name, Builder& builder);
  // Ends the life of a name; false if the call is no release.
  bool ReadRelease(const Syntax& call);
  bool ReadHeap(const Syntax& target, const Syntax& value);
  bool ReadVmBuiltin(const Syntax& call, Builder& builder, ir::Expr* value);
  ir::PrimExpr HeapAt(const Syntax& call, const Syntax& heap, int64_t place);
  bool StoreInHeap(const Syntax& call, const Syntax& heap, int64_t place, ir::PrimExpr value);
  ir::Expr MatchShape(const Syntax& call, const std::vector<const Syntax*>& args, Builder& builder);
  ir::Expr Checked(const Syntax& call, const Syntax& name, const ir::Expr& value, const ir::Type& type,
                   Builder& builder);
  void RunShapeFunction(const Syntax& call);
  ir::Expr CallDynamic(const Syntax& call, const std::vector<const Syntax*>& args, Builder& builder);
  ir::Expr ReadDynamicCall(const Syntax& call, Builder& builder);
  ir::Expr ReadContextCall(const Syntax& call, Builder& builder);
  ir::Expr Nothing(const Syntax& syntax);  // an empty tuple
  ir::Expr MadeCall(const Syntax& call, std::string_view row, std::vector<ir::Expr> args);

  template <typename T, typename... Args>
  ir::Expr MakeExpr(const Syntax& syntax, Args&&... args) {
    T node(std::forward<Args>(args)...);
    node.span = context_.SpanOf(syntax.place);
    return ir::Make<T>(std::move(node));
  }

  ReadContext& context_;
  const ModuleHead& head_;
  const ConstantStore* constants_;
  ScopeTable scope_;
  PrimReader prim_;
  TypeReader types_;
  std::unordered_set<const ir::Node*> bound_symbols_;  // bound so far by parameters and match_casts
  ir::IRModule no_functions_;                          // empty: types of functions are those of their GlobalVars
  std::unordered_set<std::string> released_;           // names that no later line may use
  std::unique_ptr<std::vector<ir::PrimExpr>> heap_;    // the heap of dimensions, if the function has one
  std::string heap_name_;
  int num_storages_ = 0;  // that the function allocates
  int num_dims_ = 0;      // variables for dimensions that have no name
};

}  // namespace ingot::script
