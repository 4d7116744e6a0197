// ReuseFolder: what the IRBuilder of a kernel asks before it makes an instruction. Integer arithmetic, conversions of
// integers and addresses that the current block has already are not made again, and neutral operands (x + 0, x * 1)
// vanish, so that LLVM gets a few instructions per unrolled access instead of its whole index arithmetic. Private to
// code generation.
#pragma once

#include <llvm/IR/ConstantFolder.h>
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <tuple>

namespace ingot::codegen {

// The values that can be had again: those at the end of one block, where each is defined before what comes next.
class ReusableValues {
 public:
  // An instruction's operator, type (of the elements for addresses) and operands.
  using Key = std::tuple<unsigned, llvm::Type*, llvm::Value*, llvm::Value*>;

  void Follow(const llvm::IRBuilderBase& builder) { builder_ = &builder; }
  // A value that promises no more than these flags say (reuse_folder.cc). Null: the block at whose end the builder
  // stands has none.
  llvm::Value* Find(const Key& key, unsigned flags) const;
  // Called for each instruction that was inserted.
  void Add(llvm::Instruction* instruction);

 private:
  const llvm::IRBuilderBase* builder_ = nullptr;
  const llvm::BasicBlock* block_ = nullptr;
  std::multimap<Key, llvm::Instruction*> values_;
};

class ReuseFolder final : public llvm::IRBuilderFolder {
 public:
  explicit ReuseFolder(const ReusableValues& values) : values_(&values) {}

  llvm::Value* FoldBinOp(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b) const override;
  llvm::Value* FoldExactBinOp(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b,
                              bool is_exact) const override;
  llvm::Value* FoldNoWrapBinOp(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b, bool has_nuw,
                               bool has_nsw) const override;
  llvm::Value* FoldGEP(llvm::Type* type, llvm::Value* pointer, llvm::ArrayRef<llvm::Value*> indices,
                       llvm::GEPNoWrapFlags flags) const override;
  llvm::Value* FoldCast(llvm::Instruction::CastOps op, llvm::Value* value, llvm::Type* type) const override;

  // What constants alone decide.
  llvm::Value* FoldBinOpFMF(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b,
                            llvm::FastMathFlags flags) const override {
    return constants_.FoldBinOpFMF(op, a, b, flags);
  }
  llvm::Value* FoldUnOpFMF(llvm::Instruction::UnaryOps op, llvm::Value* value,
                           llvm::FastMathFlags flags) const override {
    return constants_.FoldUnOpFMF(op, value, flags);
  }
  llvm::Value* FoldCmp(llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* b) const override {
    return constants_.FoldCmp(predicate, a, b);
  }
  llvm::Value* FoldSelect(llvm::Value* condition, llvm::Value* a, llvm::Value* b) const override {
    return constants_.FoldSelect(condition, a, b);
  }
  llvm::Value* FoldExtractValue(llvm::Value* aggregate, llvm::ArrayRef<unsigned> indices) const override {
    return constants_.FoldExtractValue(aggregate, indices);
  }
  llvm::Value* FoldInsertValue(llvm::Value* aggregate, llvm::Value* value,
                               llvm::ArrayRef<unsigned> indices) const override {
    return constants_.FoldInsertValue(aggregate, value, indices);
  }
  llvm::Value* FoldExtractElement(llvm::Value* vector, llvm::Value* index) const override {
    return constants_.FoldExtractElement(vector, index);
  }
  llvm::Value* FoldInsertElement(llvm::Value* vector, llvm::Value* element, llvm::Value* index) const override {
    return constants_.FoldInsertElement(vector, element, index);
  }
  llvm::Value* FoldShuffleVector(llvm::Value* a, llvm::Value* b, llvm::ArrayRef<int> mask) const override {
    return constants_.FoldShuffleVector(a, b, mask);
  }
  llvm::Value* FoldBinaryIntrinsic(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b, llvm::Type* type,
                                   llvm::Instruction* flags_from) const override {
    return constants_.FoldBinaryIntrinsic(id, a, b, type, flags_from);
  }
  llvm::Value* CreatePointerCast(llvm::Constant* constant, llvm::Type* type) const override {
    return constants_.CreatePointerCast(constant, type);
  }
  llvm::Value* CreatePointerBitCastOrAddrSpaceCast(llvm::Constant* constant, llvm::Type* type) const override {
    return constants_.CreatePointerBitCastOrAddrSpaceCast(constant, type);
  }

 private:
  const ReusableValues* values_;
  llvm::ConstantFolder constants_;
};

// Tells ReusableValues of each instruction.
class ReuseInserter final : public llvm::IRBuilderDefaultInserter {
 public:
  explicit ReuseInserter(ReusableValues& values) : values_(&values) {}
  void InsertHelper(llvm::Instruction* instruction, const llvm::Twine& name,
                    llvm::BasicBlock::iterator place) const override {
    IRBuilderDefaultInserter::InsertHelper(instruction, name, place);
    values_->Add(instruction);
  }

 private:
  ReusableValues* values_;
};

}  // namespace ingot::codegen
