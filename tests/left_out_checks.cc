#include "tests/left_out_checks.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>

extern char** environ;

namespace ingot::test {
namespace {

// Set once by main, before any test runs.
std::string& LeftOut() {
  static std::string name;
  return name;
}

// True when the run ended with a failed test: by exit code, or by a crash.
bool FailsWithout(const char* program, const std::string& check) {
  std::string flag = "--without-check=" + check;
  std::string suite = "--test-suite=checks";
  std::string self = program;
  char* arguments[] = {self.data(), flag.data(), suite.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child) return false;
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

std::vector<std::string> AllChecks() {
  std::vector<std::string> names;
  for (const formats::ContainerCheckRow& row : formats::ContainerChecks()) {
    names.push_back(std::string("container.") + row.name);
  }
  for (const vm::CheckInfo& row : vm::AllChecks()) names.push_back(std::string("vm.") + row.name);
  return names;
}

bool LeaveOutCheck(std::string_view name) {
  const std::vector<std::string> all = AllChecks();
  if (std::find(all.begin(), all.end(), name) == all.end()) return false;
  LeftOut() = name;
  return true;
}

bool IsCheckLeftOut(std::string_view name) { return LeftOut() == name; }
bool IsWorthTesting(std::string_view name) { return LeftOut().empty() || IsCheckLeftOut(name); }

formats::ContainerCheckMask LeftOutContainerChecks() {
  formats::ContainerCheckMask mask;
  for (const formats::ContainerCheckRow& row : formats::ContainerChecks()) {
    if (IsCheckLeftOut(std::string("container.") + row.name)) mask = formats::ContainerCheckMask::Of(row.check);
  }
  return mask;
}

vm::CheckSet VmChecks() {
  vm::CheckSet checks;
  for (size_t i = 0; i < vm::AllChecks().size(); ++i) {
    if (IsCheckLeftOut(std::string("vm.") + vm::AllChecks()[i].name))
      checks = checks.Without(static_cast<vm::Check>(i));
  }
  return checks;
}

int RunWithoutEachCheck(const char* program) {
  const std::vector<std::string> all = AllChecks();
  size_t failed = 0;
  for (const std::string& check : all) {
    const bool fails = FailsWithout(program, check);
    failed += fails ? 1 : 0;
    if (!fails) std::printf("no test fails without the check %s\n", check.c_str());
  }
  std::printf("left out each check in turn: a test failed for %zu of %zu\n", failed, all.size());
  return failed == all.size() ? 0 : 1;
}

}  // namespace ingot::test
