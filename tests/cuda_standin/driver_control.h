// Tests that run on the stand-in and on a GPU's driver: what only the stand-in can tell or do is asked here.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>

#include "tests/cuda_standin/standin_control.h"

namespace ingot {

class DriverControl {
 public:
  DriverControl() { REQUIRE_MESSAGE(library_ != nullptr, "LD_LIBRARY_PATH has to name the folder of the stand-in"); }
  // Otherwise it is a GPU's driver.
  bool IsStandIn() const { return dlsym(library_, "standin_calls") != nullptr; }
  // For a test that cannot run without the stand-in.
  bool Skips() const {
    if (!IsStandIn()) MESSAGE("SKIP: libcuda.so.1 is not the stand-in");
    return !IsStandIn();
  }
  void FailCall(int64_t call, int error, bool for_ever) const {
    Find<decltype(standin_fail_call)>("standin_fail_call")(call, error, for_ever ? 1 : 0);
  }
  void RunAhead(bool on) const { Find<decltype(standin_run_ahead)>("standin_run_ahead")(on ? 1 : 0); }
  int64_t Calls() const { return Find<decltype(standin_calls)>("standin_calls")(); }
  // A GPU's driver does not tell: zero.
  int64_t LiveObjects() const {
    return IsStandIn() ? Find<decltype(standin_live_objects)>("standin_live_objects")() : 0;
  }
  int64_t KnownModules() const { return Find<decltype(standin_known_modules)>("standin_known_modules")(); }
  std::string LastFault() const { return Find<decltype(standin_last_fault)>("standin_last_fault")(); }

 private:
  template <typename F>
  F* Find(const char* name) const {
    auto* found = reinterpret_cast<F*>(dlsym(library_, name));
    REQUIRE_MESSAGE((found != nullptr), "libcuda.so.1 is not the stand-in");
    return found;
  }
  void* library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
};

}  // namespace ingot
