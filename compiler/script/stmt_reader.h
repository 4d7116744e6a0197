// StmtReader: reads the syntax of one tensor function to a PrimFunc. Flat statements with a body (lets, allocations,
// assertions, attributes) take the rest of their suite. A function with blocks gets its root block whether it is
// written, commented or left out; blocks without T.reads / T.writes get the regions of their bodies.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/script/prim_reader.h"

namespace ingot::script {

class StmtReader {
 public:
  StmtReader(ReadContext& context, const ScopeTable::ModuleSymbols* module_symbols)
      : context_(context), scope_(module_symbols), prim_(context, scope_) {}
  // Returns null after a report.
  ir::PrimFunc ReadFunction(const Statement& def, bool is_private);

 private:
  // What the statements at the head of a block declare.
  struct BlockFrame {
    std::vector<ir::IterVar> iter_vars;
    std::vector<ir::PrimExpr> iter_values;
    ir::PrimExpr predicate;
    std::optional<std::vector<ir::BufferRegion>> reads, writes;
    std::vector<ir::Buffer> alloc_buffers;
    std::vector<ir::MatchBufferRegion> match_buffers;
    ir::Attrs annotations;
    ir::Stmt init;
    bool is_root = false;  // the function's root block: a head is allowed too
  };
  // A suite while it is read: its statements, and flat statements that wait for their bodies.
  struct Suite {
    std::vector<ir::Stmt> stmts;
    struct Open {
      size_t first;  // index of the body's first statement in stmts
      std::function<ir::Stmt(ir::Stmt)> wrap;
    };
    std::vector<Open> open;
    BlockFrame* block = nullptr;  // the block whose head this is
    bool is_function = false;     // the function's own suite
  };

  bool ReadParams(const Statement& def);
  ir::Stmt ReadRootBody(const Statement& def, bool has_root);
  ir::Stmt ReadBody(const std::vector<Statement>& body, BlockFrame* block, bool is_function = false);
  void ReadStatement(const Statement& statement, Suite& suite);
  void ReadExpressionStatement(const Statement& statement, Suite& suite);
  void ReadAssign(const Statement& statement, Suite& suite);
  void ReadStore(const Statement& statement, Suite& suite);
  void ReadLet(const Statement& statement, std::optional<DataType> dtype, const Syntax& value, Suite& suite);
  bool ReadScalar(const Statement& statement, Suite& suite);
  // with T.LetStmt(value) as x, T.LetStmt(value, var=x), T.let(x, value)
  void ReadLetStatement(const Statement& statement, const std::string& callee, Suite& suite, bool has_own_body);
  void ReadFor(const Statement& statement, Suite& suite);
  void ReadWith(const Statement& statement, Suite& suite);
  void ReadAssert(const Statement& statement, Suite& suite);
  std::optional<std::string> ReadMessage(const Syntax* syntax);
  // Defines the name as one whose definition was reported, so that its uses are silent.
  void DefineError(const Syntax& target);
  template <typename T, typename... Args>
  ir::Stmt MakeStmt(Place place, Args&&... args) {
    T node(std::forward<Args>(args)...);
    node.span = context_.SpanOf(place);
    return ir::Make<T>(std::move(node));
  }

  // ---- Blocks, buffers and threads (block_reader.cc)
  bool IsBlockHead(const std::string& callee) const;
  void ReadBlockHead(const Statement& statement, const std::string& callee, const Syntax& call, Suite& suite);
  void ReadAxis(const Statement& statement, const std::string& callee, const Syntax& call, BlockFrame& block);
  void ReadRemap(const Statement& statement, const Syntax& call, BlockFrame& block);
  void AddAxis(const Syntax& target, ir::IterType type, ir::Range domain, ir::PrimExpr value, BlockFrame& block);
  std::optional<std::vector<ir::BufferRegion>> ReadRegions(const Syntax& call);
  void ReadBlock(const Statement& statement, Suite& suite);
  // Checks arguments that older printers wrote out: only their default values are supported.
  bool CheckBufferDefaults(Arguments& args, bool is_view);
  ir::Buffer ReadBufferArguments(Arguments& args, size_t first, std::string_view name, const char* scope = "global",
                                 bool is_view = false);
  // V = T.decl_buffer(shape, dtype, data=A.data): reads a view of A's elements under other dimensions.
  void ReadView(const Statement& statement, const std::string& callee, const Syntax& call);
  // V = A.view(dims), A.view("int32"): reads a view as TVM 0.27 prints it.
  void ReadViewMethod(const Statement& statement, const Syntax& call);
  void DefineView(const Syntax& where, const Syntax& target, const ir::Buffer& owner, ir::BufferNode view);
  void ReadAllocatePointer(const Statement& statement, const Syntax& call, Suite& suite, bool has_own_body);
  void ReadMatchBuffer(const Statement& statement, const Syntax& call, Suite& suite);
  void ReadAllocate(const Statement& statement, const std::string& callee, const Syntax& call, Suite& suite,
                    bool has_own_body);
  void ReadAttribute(const Statement& statement, const Syntax& call, Suite& suite, bool has_own_body);
  void ReadLaunchThread(const Statement& statement, const Syntax& call, Suite& suite, bool has_own_body);
  // Opens a flat statement, or gives it the body of its `with`.
  // count: of the statements that wrap nests.
  void AddScoped(const Statement& statement, Suite& suite, bool has_own_body, std::function<ir::Stmt(ir::Stmt)> wrap,
                 size_t count = 1);

  ReadContext& context_;
  ScopeTable scope_;
  PrimReader prim_;
  std::vector<ir::PrimFuncParam> params_;
  ir::Attrs attrs_;
  bool old_dialect_ = false;  // T.block was used: T.alloc_buffer then belongs to blocks
  std::unordered_map<const ir::Node*, std::string> env_threads_;
  std::unordered_set<std::string> allocated_;       // names of allocated pointers
  std::unordered_set<std::string> assigned_again_;  // names that the function assigns more than once
  std::unordered_map<std::string, ir::Buffer> scalars_;
  size_t num_open_ = 0;  // statements whose body the reader is in
  bool is_too_deep_ = false;
};

}  // namespace ingot::script
