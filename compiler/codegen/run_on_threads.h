// The threads that compile kernels side by side.
#pragma once

#include <cstddef>
#include <functional>

namespace ingot::codegen {

// Calls work() on up to num_threads threads, the caller's among them, and waits until all have returned. It has to do
// the same whatever their number is: where the system gives no further thread, those that are there do the work.
void RunOnThreads(size_t num_threads, const std::function<void()>& work);

}  // namespace ingot::codegen
