// WidenLiveValues: vectors of an odd number of lanes that live across blocks take whole registers. Private to code
// generation.
#pragma once

namespace llvm {
class Module;
}  // namespace llvm

namespace ingot::codegen {

// LLVM passes a vector whose number of lanes is no power of two from block to block lane by lane, where the next power of
// two does not fit one register. Every such value becomes one of the next power of two on its way; the added lanes hold
// poison and are never read. Last before instruction selection, so that nothing simplifies the conversions away.
void WidenLiveValues(llvm::Module& module);

}  // namespace ingot::codegen
