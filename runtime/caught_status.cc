// Tells exceptions apart by catching them again; where the failure itself finds no memory, that is the failure.
#include "runtime/caught_status.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace ingot {

Status CaughtStatus() {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const abi::__forced_unwind&) {  // the end of a thread that is cancelled
      throw;
    } catch (const std::length_error&) {  // a container of more elements than memory has addresses
      throw std::bad_alloc();
    } catch (const std::exception& error) {
      return Status(StatusCode::kFailed, error.what());
    } catch (...) {
      return Status(StatusCode::kFailed, "an exception");
    }
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory("out of memory");
  }
}

}  // namespace ingot
