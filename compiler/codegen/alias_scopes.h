// AliasScopes: tells LLVM which accesses of a kernel's memory are disjoint. It owns a scope per buffer (parameters,
// workspaces, stack buffers) and the pairs of scopes that may share memory; all other pairs are disjoint. Private to
// code generation.
#pragma once

#include <llvm/IR/LLVMContext.h>

#include <string>
#include <vector>

namespace llvm {
class Instruction;
class MDNode;
}  // namespace llvm

namespace ingot::codegen {

class AliasScopes {
 public:
  AliasScopes(llvm::LLVMContext& context, const std::string& kernel);

  int Add(const std::string& buffer);  // returns the scope's index
  void MayAlias(int scope, int other);
  // An access is annotated with the scopes known when it is emitted: those of parameters and of everything allocated
  // around or before it. Accesses of a later allocation say themselves that they are disjoint from this one.
  void Annotate(llvm::Instruction* access, int scope) const;

 private:
  llvm::LLVMContext& context_;
  llvm::MDNode* domain_;
  std::vector<llvm::MDNode*> scopes_;
  std::vector<std::vector<int>> may_alias_;  // by scope: the scopes that may share its memory
};

}  // namespace ingot::codegen
