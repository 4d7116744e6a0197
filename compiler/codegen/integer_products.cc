// How sums of products are computed:
//
//   bytes  With VNNI one instruction adds the products of four bytes to a sum. Elsewhere on x86-64 bytes at even and at
//          odd places are widened to 16 bits and multiplied in pairs, which cannot overflow. A word that is made of four
//          neighbours in memory (op's topi::WordOfBytes) is loaded as one.
//   pairs  a * (w << 16 >> 16) + b * (w >> 16) in int32, where a and b are int16: one instruction of x86-64 multiplies
//          the halves of words and adds them; with VNNI it adds them to a sum, too. Where a and b are neighbours in
//          memory, they are loaded as one word. Elsewhere the expression stays as it is.
#include "compiler/codegen/integer_products.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "compiler/codegen/numeric.h"
#include "runtime/cpu_features.h"

namespace ingot::codegen {
namespace {

using llvm::Value;

constexpr const char* kDotBytes = "ingot.dot_bytes.";
constexpr const char* kAddBytes = "ingot.add_bytes.";
constexpr const char* kAddPairs = "ingot.add_pairs.";

// A function of so many operands of a type and a result of it, whose calls may be moved and merged.
llvm::Function* Marker(llvm::Module& module, const std::string& name, llvm::Type* type, unsigned num_operands) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const llvm::SmallVector<llvm::Type*> operands(num_operands, type);
  llvm::FunctionCallee marker =
      module.getOrInsertFunction(name + std::to_string(vector != nullptr ? vector->getNumElements() : 1),
                                 llvm::FunctionType::get(type, operands, false));
  auto* function = llvm::cast<llvm::Function>(marker.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return function;
}

// The instruction that adds to the product, if it alone uses it; its other operand.
std::pair<llvm::BinaryOperator*, Value*> SumOf(Value* product) {
  auto* add = product->hasOneUse() ? llvm::dyn_cast<llvm::BinaryOperator>(*product->user_begin()) : nullptr;
  if (add == nullptr || add->getOpcode() != llvm::Instruction::Add) return {nullptr, nullptr};
  return {add, add->getOperand(add->getOperand(0) == product ? 1 : 0)};
}

// Replaces the product, and what adds it to a sum, by a call of the marker.
void ReplaceProduct(llvm::Instruction& product, const char* name, Value* a, Value* b) {
  const auto [add, other] = SumOf(&product);
  llvm::Instruction* replaced = add != nullptr ? static_cast<llvm::Instruction*>(add) : &product;
  llvm::IRBuilder<> builder(replaced);
  Value* sum = add != nullptr ? other : llvm::Constant::getNullValue(product.getType());
  llvm::Function* marker = Marker(*product.getModule(), name, product.getType(), 3);
  replaced->replaceAllUsesWith(builder.CreateCall(marker, {sum, a, b}));
  replaced->eraseFromParent();
  if (add != nullptr) product.eraseFromParent();
}

// ---- Values by the way in which they are computed: nothing has merged equal instructions yet
bool IsSplatOf(const Value* value, uint64_t number) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant != nullptr && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  return integer != nullptr && integer->getValue() == number;
}

// Whether nothing between two instructions of one block, of which any may be the first, writes to memory.
bool WritesNothingBetween(const llvm::Instruction& a, const llvm::Instruction& b) {
  if (a.getParent() != b.getParent()) return false;
  const bool is_first = a.comesBefore(&b);
  const llvm::Instruction* last = is_first ? &b : &a;
  for (const llvm::Instruction* at = is_first ? &a : &b; at != last; at = at->getNextNode()) {
    if (at->mayWriteToMemory()) return false;
  }
  return true;
}

// How many more instructions of a question are compared: the same operands come again and again on many ways.
class Patience {
 public:
  bool is_over() { return left_-- <= 0; }

 private:
  int left_ = 500;
};

bool IsSame(const Value* a, const Value* b, Patience& patience) {
  if (a == b) return true;
  const auto* x = llvm::dyn_cast<llvm::Instruction>(a);
  const auto* y = llvm::dyn_cast<llvm::Instruction>(b);
  if (x == nullptr || y == nullptr || patience.is_over() || !x->isSameOperationAs(y)) return false;
  if (llvm::isa<llvm::PHINode>(x) || x->mayHaveSideEffects()) return false;
  if (x->mayReadFromMemory() && !WritesNothingBetween(*x, *y)) return false;
  for (unsigned i = 0; i < x->getNumOperands(); ++i) {
    if (!IsSame(x->getOperand(i), y->getOperand(i), patience)) return false;
  }
  return true;
}

// b - a, where it is a constant.
std::optional<int64_t> DifferenceOf(const Value* a, const Value* b, Patience& patience) {
  if (IsSame(a, b, patience)) return 0;
  const auto* number = llvm::dyn_cast<llvm::ConstantInt>(a);
  const auto* other = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (number != nullptr && other != nullptr) return other->getSExtValue() - number->getSExtValue();
  const auto* x = llvm::dyn_cast<llvm::BinaryOperator>(a);
  const auto* y = llvm::dyn_cast<llvm::BinaryOperator>(b);
  if (y == nullptr) return std::nullopt;
  const auto* term = llvm::dyn_cast<llvm::ConstantInt>(y->getOperand(1));
  const bool adds = y->getOpcode() == llvm::Instruction::Add;
  if (adds && term != nullptr && IsSame(a, y->getOperand(0), patience)) return term->getSExtValue();
  if (x == nullptr || x->getOpcode() != y->getOpcode()) return std::nullopt;
  const std::optional<int64_t> left = DifferenceOf(x->getOperand(0), y->getOperand(0), patience);
  if (!left) return std::nullopt;
  if (adds) {
    const std::optional<int64_t> right = DifferenceOf(x->getOperand(1), y->getOperand(1), patience);
    return right ? std::optional<int64_t>(*left + *right) : std::nullopt;
  }
  const bool multiplies = y->getOpcode() == llvm::Instruction::Mul && x->getOperand(1) == term && term != nullptr;
  return multiplies ? std::optional<int64_t>(*left * term->getSExtValue()) : std::nullopt;
}

// ---- Sums of two products
// The operands of a binary instruction; nulls for any other value.
std::pair<Value*, Value*> OperandsOf(Value* value, llvm::Instruction::BinaryOps opcode) {
  auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(value);
  if (binary == nullptr || binary->getOpcode() != opcode) return {nullptr, nullptr};
  return {binary->getOperand(0), binary->getOperand(1)};
}

// The word of which the value is the upper half, or the lower one, as a signed number; null: it is none.
Value* WordOfHalf(Value* value, bool upper) {
  const auto [shifted, right] = OperandsOf(value, llvm::Instruction::AShr);
  if (shifted == nullptr || !IsSplatOf(right, 16)) return nullptr;
  const auto [word, left] = OperandsOf(shifted, llvm::Instruction::Shl);
  if (word == nullptr) return upper ? shifted : nullptr;
  return !upper && IsSplatOf(left, 16) ? word : nullptr;
}

// The number that is in all lanes; null: the value is put together otherwise.
Value* ScalarOfSplat(Value* vector) {
  auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(vector);
  auto* insert = shuffle != nullptr && shuffle->isZeroEltSplat()
                     ? llvm::dyn_cast<llvm::InsertElementInst>(shuffle->getOperand(0))
                     : nullptr;
  return insert != nullptr && IsSplatOf(insert->getOperand(2), 0) ? insert->getOperand(1) : nullptr;
}

// The number of 16 bits that the value is, in any or in all lanes; null: it is none. A splat gives its one lane.
Value* NarrowOf(Value* value) {
  if (Value* scalar = ScalarOfSplat(value)) value = scalar;
  auto* extension = llvm::dyn_cast<llvm::SExtInst>(value);
  if (extension == nullptr || !extension->getSrcTy()->getScalarType()->isIntegerTy(16)) return nullptr;
  value = extension->getOperand(0);
  Value* scalar = ScalarOfSplat(value);
  return scalar != nullptr ? scalar : value;
}

// One load of 32 bits in place of loads of two or four numbers that lie side by side; null: they do not.
Value* LoadOfNeighbours(llvm::ArrayRef<Value*> numbers) {
  const auto bits = static_cast<unsigned>(32 / numbers.size());
  auto* first = llvm::dyn_cast<llvm::LoadInst>(numbers[0]);
  if (first == nullptr || !first->isSimple() || !first->getType()->isIntegerTy(bits)) return nullptr;
  const auto* from = llvm::dyn_cast<llvm::GetElementPtrInst>(first->getPointerOperand());
  if (from == nullptr || from->getNumIndices() != 1 || !from->getSourceElementType()->isIntegerTy(bits)) return nullptr;
  for (size_t i = 1; i < numbers.size(); ++i) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(numbers[i]);
    if (load == nullptr || !load->isSimple() || load->getType() != first->getType()) return nullptr;
    const auto* to = llvm::dyn_cast<llvm::GetElementPtrInst>(load->getPointerOperand());
    if (to == nullptr || to->getNumIndices() != 1 || to->getSourceElementType() != first->getType()) return nullptr;
    Patience patience;
    if (!WritesNothingBetween(*first, *load)) return nullptr;
    if (!IsSame(from->getPointerOperand(), to->getPointerOperand(), patience)) return nullptr;
    if (DifferenceOf(from->getOperand(1), to->getOperand(1), patience) != static_cast<int64_t>(i)) return nullptr;
  }
  llvm::IRBuilder<> b(first);
  llvm::LoadInst* all = b.CreateAlignedLoad(b.getInt32Ty(), first->getPointerOperand(), first->getAlign());
  all->copyMetadata(*first, {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
  return all;
}

// The load of one word in place of four bytes that are put together, in all lanes if the value has lanes; null: the value
// is put together otherwise.
Value* WordOfNeighbours(Value* value) {
  Value* bytes[4] = {nullptr, nullptr, nullptr, nullptr};
  Value* scalar = ScalarOfSplat(value);
  llvm::SmallVector<Value*> terms{scalar != nullptr ? scalar : value};
  while (!terms.empty()) {
    Value* term = terms.pop_back_val();
    if (const auto [x, y] = OperandsOf(term, llvm::Instruction::Or); x != nullptr) {
      terms.append({x, y});
      continue;
    }
    unsigned place = 0;
    if (const auto [x, amount] = OperandsOf(term, llvm::Instruction::Shl); x != nullptr) {
      for (unsigned k = 1; k < 4; ++k) place = IsSplatOf(amount, uint64_t{8} * k) ? k : place;
      if (place == 0) return nullptr;
      term = x;
    }
    if (Value* lane = ScalarOfSplat(term)) term = lane;
    auto* extension = llvm::dyn_cast<llvm::ZExtInst>(term);
    if (extension == nullptr || bytes[place] != nullptr) return nullptr;
    term = extension->getOperand(0);
    Value* lane = ScalarOfSplat(term);
    bytes[place] = lane != nullptr ? lane : term;
  }
  if (llvm::is_contained(bytes, nullptr)) return nullptr;
  Value* word = LoadOfNeighbours(bytes);
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  if (word == nullptr || type == nullptr) return word;
  llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(word)->getNextNode());
  return b.CreateVectorSplat(type->getNumElements(), word);
}

// Returns the two words whose halves are multiplied; nulls where the sum has another form.
std::pair<Value*, Value*> PairsOf(llvm::BinaryOperator& sum) {
  const std::pair<Value*, Value*> none;
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(sum.getType());
  if (sum.getOpcode() != llvm::Instruction::Add || type == nullptr || type->getNumElements() % 4 != 0) return none;
  if (!type->getElementType()->isIntegerTy(32)) return none;
  Value* halves[2] = {nullptr, nullptr};
  Value* words[2] = {nullptr, nullptr};
  for (Value* term : sum.operands()) {
    const auto [x, y] = OperandsOf(term, llvm::Instruction::Mul);
    if (x == nullptr) return none;
    for (const auto& [number, half] : {std::pair(x, y), std::pair(y, x)}) {
      for (const bool upper : {false, true}) {
        Value* word = WordOfHalf(half, upper);
        Value* narrow = word != nullptr ? NarrowOf(number) : nullptr;
        if (narrow == nullptr) continue;
        halves[upper ? 1 : 0] = narrow;
        words[upper ? 1 : 0] = word;
      }
    }
  }
  Patience patience;
  if (words[0] == nullptr || words[1] == nullptr || !IsSame(words[0], words[1], patience)) return none;
  if (halves[0]->getType() != halves[1]->getType()) return none;
  llvm::IRBuilder<> b(&sum);
  Value* pair = LoadOfNeighbours(halves);
  if (pair == nullptr) {
    llvm::Type* wide = WithLanesOf(b.getInt32Ty(), halves[0]);
    pair = b.CreateOr(b.CreateZExt(halves[0], wide),
                      b.CreateShl(b.CreateZExt(halves[1], wide), llvm::ConstantInt::get(wide, 16)));
  }
  if (!pair->getType()->isVectorTy()) pair = b.CreateVectorSplat(type->getNumElements(), pair);
  return {pair, words[0]};
}

// ---- Instructions
// A sum of int32, or of vectors of it, plus products, in registers of the target's width.
class ProductExpander {
 public:
  ProductExpander(llvm::IRBuilderBase& builder, const CpuFeatures& features, bool is_x86)
      : b_(builder), features_(features), is_x86_(is_x86) {}

  Value* AddBytes(Value* sum, Value* a, Value* b) {
    if (!a->getType()->isVectorTy() || !is_x86_) return OfBytes(sum, a, b);
    return InRegisters(sum, a, b, &ProductExpander::BytesOfRegister);
  }
  Value* AddPairs(Value* sum, Value* a, Value* b) { return InRegisters(sum, a, b, &ProductExpander::PairsOfRegister); }

 private:
  using OfRegister = Value* (ProductExpander::*)(Value* sum, Value* a, Value* b, unsigned lanes);

  Value* InRegisters(Value* sum, Value* a, Value* b, OfRegister add) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements();
    unsigned width = features_.Covers(CpuFeatures::Level(4)) ? 16 : features_.Has(CpuFeature::kAvx2) ? 8 : 4;
    while (width / 2 >= lanes && width > 4) width /= 2;
    if (width == lanes) return (this->*add)(sum, a, b, width);
    // What fills up the last register is never looked at.
    const unsigned filled = (lanes + width - 1) / width * width;
    Value *whole_sum = WithLanes(sum, filled), *whole_a = WithLanes(a, filled), *whole_b = WithLanes(b, filled);
    if (width == filled) return WithLanes((this->*add)(whole_sum, whole_a, whole_b, width), lanes);
    Value* result = llvm::PoisonValue::get(whole_a->getType());
    for (unsigned first = 0; first < filled; first += width) {
      const auto part = [&](Value* whole) {
        return b_.CreateExtractVector(llvm::FixedVectorType::get(b_.getInt32Ty(), width), whole, b_.getInt64(first));
      };
      Value* added = (this->*add)(part(whole_sum), part(whole_a), part(whole_b), width);
      result = b_.CreateInsertVector(result->getType(), result, added, b_.getInt64(first));
    }
    return WithLanes(result, lanes);
  }

  // The first lanes of a vector, and lanes of any value behind its own.
  Value* WithLanes(Value* vector, unsigned lanes) {
    const unsigned own = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
    if (own == lanes) return vector;
    llvm::SmallVector<int> from;
    for (unsigned lane = 0; lane < lanes; ++lane) from.push_back(lane < own ? static_cast<int>(lane) : -1);
    return b_.CreateShuffleVector(vector, from);
  }

  // A register of int32 lanes: 4, 8 or 16.
  Value* BytesOfRegister(Value* sum, Value* a, Value* b, unsigned lanes) {
    if (HasVnni(lanes)) {
      const char* name = lanes == 16  ? "llvm.x86.avx512.vpdpbusd.512"
                         : lanes == 8 ? "llvm.x86.avx512.vpdpbusd.256"
                                      : "llvm.x86.avx512.vpdpbusd.128";
      return Call(name, sum->getType(), {sum, a, b});
    }
    llvm::Type* pairs = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes * 2);
    Value* eight = llvm::ConstantInt::get(pairs, 8);
    Value* a_pairs = b_.CreateBitCast(a, pairs);
    Value* b_pairs = b_.CreateBitCast(b, pairs);
    Value* a_even = b_.CreateAnd(a_pairs, llvm::ConstantInt::get(pairs, 0xFF));
    Value* b_even = b_.CreateAShr(b_.CreateShl(b_pairs, eight), eight);
    Value* even = ProductsOfPairs(a_even, b_even, lanes);
    Value* odd = ProductsOfPairs(b_.CreateLShr(a_pairs, eight), b_.CreateAShr(b_pairs, eight), lanes);
    return b_.CreateAdd(b_.CreateAdd(sum, even), odd);
  }

  Value* PairsOfRegister(Value* sum, Value* a, Value* b, unsigned lanes) {
    if (HasVnni(lanes)) {
      const char* name = lanes == 16  ? "llvm.x86.avx512.vpdpwssd.512"
                         : lanes == 8 ? "llvm.x86.avx512.vpdpwssd.256"
                                      : "llvm.x86.avx512.vpdpwssd.128";
      return Call(name, sum->getType(), {sum, a, b});
    }
    llvm::Type* pairs = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes * 2);
    return b_.CreateAdd(sum, ProductsOfPairs(b_.CreateBitCast(a, pairs), b_.CreateBitCast(b, pairs), lanes));
  }

  Value* OfBytes(Value* sum, Value* a, Value* b) {
    const auto bits = [&](uint64_t value) { return llvm::ConstantInt::get(a->getType(), value); };
    for (unsigned shift = 0; shift < 32; shift += 8) {
      Value* of_a = b_.CreateAnd(b_.CreateLShr(a, bits(shift)), bits(0xFF));
      Value* of_b = b_.CreateAShr(b_.CreateShl(b, bits(24 - shift)), bits(24));
      sum = b_.CreateAdd(sum, b_.CreateMul(of_a, of_b));
    }
    return sum;
  }

  bool HasVnni(unsigned lanes) const {
    const bool has_avx512 = features_.Has(CpuFeature::kAvx512vnni) && features_.Has(CpuFeature::kAvx512vl);
    return has_avx512 || (lanes < 16 && features_.Has(CpuFeature::kAvxVnni));
  }

  // The sums of two products each, of vectors of int16.
  Value* ProductsOfPairs(Value* a, Value* b, unsigned lanes) {
    const char* name = lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                       : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                    : "llvm.x86.sse2.pmadd.wd";
    return Call(name, llvm::FixedVectorType::get(b_.getInt32Ty(), lanes), {a, b});
  }

  Value* Call(const char* name, llvm::Type* result, llvm::ArrayRef<Value*> arguments) {
    llvm::SmallVector<llvm::Type*> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    llvm::Module& module = *b_.GetInsertBlock()->getModule();
    return b_.CreateCall(module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), arguments);
  }

  llvm::IRBuilderBase& b_;
  const CpuFeatures& features_;
  const bool is_x86_;
};

bool IsX86(const Target& target) { return target.triple.starts_with("x86_64"); }

}  // namespace

llvm::Function* DotBytesMarker(llvm::Module& module, llvm::Type* type) { return Marker(module, kDotBytes, type, 2); }

void JoinProducts(llvm::Module& module, const Target& target) {
  for (llvm::Function& marker : llvm::make_early_inc_range(module)) {
    if (!marker.getName().starts_with(kDotBytes)) continue;
    for (llvm::User* user : llvm::make_early_inc_range(marker.users())) {
      auto* call = llvm::cast<llvm::CallInst>(user);
      Value* a = call->getArgOperand(0);
      Value* word = WordOfNeighbours(a);
      ReplaceProduct(*call, kAddBytes, word != nullptr ? word : a, call->getArgOperand(1));
    }
    marker.eraseFromParent();
  }
  if (!IsX86(target)) return;
  llvm::SmallVector<llvm::BinaryOperator*> sums;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(&instruction);
      const auto is_product = [](Value* x) { return OperandsOf(x, llvm::Instruction::Mul).first != nullptr; };
      if (sum != nullptr && llvm::all_of(sum->operands(), is_product)) sums.push_back(sum);
    }
  }
  // What is erased with a sum adds it to something, so that it is no sum of two products.
  for (llvm::BinaryOperator* sum : sums) {
    const auto [a, b] = PairsOf(*sum);
    if (a != nullptr) ReplaceProduct(*sum, kAddPairs, a, b);
  }
}

void ExpandProducts(llvm::Module& module, const Target& target) {
  const CpuFeatures features{target.required_features};
  for (llvm::Function& marker : llvm::make_early_inc_range(module)) {
    const bool are_bytes = marker.getName().starts_with(kAddBytes);
    if (!are_bytes && !marker.getName().starts_with(kAddPairs)) continue;
    for (llvm::User* user : llvm::make_early_inc_range(marker.users())) {
      auto* call = llvm::cast<llvm::CallInst>(user);
      llvm::IRBuilder<> builder(call);
      ProductExpander expander(builder, features, IsX86(target));
      Value *sum = call->getArgOperand(0), *a = call->getArgOperand(1), *b = call->getArgOperand(2);
      call->replaceAllUsesWith(are_bytes ? expander.AddBytes(sum, a, b) : expander.AddPairs(sum, a, b));
      call->eraseFromParent();
    }
    marker.eraseFromParent();
  }
}

}  // namespace ingot::codegen
