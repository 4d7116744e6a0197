// The worker at the other end of a runner's command (compiler/tune/measure): measures candidates that come through its
// standard input, and answers on its standard output. Linked fully static, so that the machine it is sent to needs
// nothing installed. People do not call it.
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "compiler/tune/measure/worker.h"

namespace {

constexpr const char* kUsage =
    "usage: measure-worker [--remove]    (--remove: its own file first)\n\n"
    "Measures kernels for a tool that talks to it through its standard input and output.\n";

// What sent the worker here made a file of it for this run alone.
void RemoveOwnFile() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size > 0 && static_cast<size_t>(size) < sizeof path) {
    unlink(std::string(path, static_cast<size_t>(size)).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view argument = argc > 1 ? argv[1] : "";
  if (argc > 2 || (argc == 2 && argument != "--remove") || isatty(STDIN_FILENO) == 1) {
    std::fputs(kUsage, argument == "--help" ? stdout : stderr);
    return argument == "--help" ? 0 : 2;
  }
  if (argument == "--remove") RemoveOwnFile();
  // The streams move away, so that nothing that a candidate prints or reads is in their way.
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10), output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (input < 0 || output < 0 || nothing < 0) return 3;
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  std::signal(SIGPIPE, SIG_IGN);
  const ingot::Status status = ingot::tune::RunWorker(input, output);
  if (status.ok()) return 0;
  std::fprintf(stderr, "measure-worker: %s\n", status.message().c_str());
  return 3;
}
