// The scopes as LLVM's metadata: an access carries its own scope and the list of those that it never meets.
#include "compiler/codegen/alias_scopes.h"

#include <llvm/IR/Instruction.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

namespace ingot::codegen {

AliasScopes::AliasScopes(llvm::LLVMContext& context, const std::string& kernel)
    : context_(context), domain_(llvm::MDBuilder(context).createAnonymousAliasScopeDomain(kernel)) {}

int AliasScopes::Add(const std::string& buffer) {
  scopes_.push_back(llvm::MDBuilder(context_).createAnonymousAliasScope(domain_, buffer));
  may_alias_.emplace_back();
  return static_cast<int>(scopes_.size()) - 1;
}

void AliasScopes::MayAlias(int scope, int other) {
  may_alias_[scope].push_back(other);
  may_alias_[other].push_back(scope);
}

void AliasScopes::Annotate(llvm::Instruction* access, int scope) const {
  std::vector<llvm::Metadata*> others;
  const std::vector<int>& shared = may_alias_[scope];
  for (int i = 0; i < static_cast<int>(scopes_.size()); ++i) {
    const bool may_meet = i == scope || std::find(shared.begin(), shared.end(), i) != shared.end();
    if (!may_meet) others.push_back(scopes_[i]);
  }
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context_, {scopes_[scope]}));
  if (!others.empty()) access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context_, others));
}

}  // namespace ingot::codegen
