// Starts what threads the system gives.
#include "compiler/codegen/run_on_threads.h"

#include <system_error>
#include <thread>
#include <vector>

namespace ingot::codegen {

void RunOnThreads(size_t num_threads, const std::function<void()>& work) {
  std::vector<std::thread> threads;
  try {
    for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(std::cref(work));
  } catch (const std::system_error&) {  // no more of them
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ingot::codegen
