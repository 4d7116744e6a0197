#include "compiler/codegen/cubin.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern char** environ;

namespace ingot::codegen {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the scope.
class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "ingot-ptxas-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  bool exists() const { return !path_.empty(); }
  std::string File(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Result<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open()) return Status(StatusCode::kFailed, "cannot read " + path);
  return bytes;
}

// Runs the command with both outputs in a file. The exit status, or -1 with errno's number in `error`.
int Run(const std::vector<std::string>& command, const std::string& output, int& error) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = -1;
  error = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno == EINTR) continue;
    error = errno;
    return -1;
  }
  return status;
}

}  // namespace

Result<std::string> AssembleCubin(const std::string& ptx, const std::string& architecture, const std::string& ptxas) {
  const Folder folder;
  if (!folder.exists()) return Status(StatusCode::kFailed, std::string("no folder for files: ") + std::strerror(errno));
  const std::string text = folder.File("kernels.ptx"), cubin = folder.File("kernels.cubin");
  std::ofstream file(text, std::ios::binary);
  file << ptx;
  file.close();
  if (file.fail()) return Status(StatusCode::kFailed, "cannot write " + text);
  int error = 0;
  const std::string printed = folder.File("printed");
  const int status = Run({ptxas, "-arch=" + architecture, text, "-o", cubin}, printed, error);
  if (status == -1) return Status(StatusCode::kNotFound, ptxas + ": " + std::strerror(error));
  if (status != 0) {
    const Result<std::string> why = ReadAll(printed);
    const bool says_why = why.ok() && !why->empty();
    return Status(StatusCode::kFailed, ptxas + ": " + (says_why ? why->substr(0, 2000) : "it failed without a word"));
  }
  INGOT_ASSIGN_OR_RETURN(std::string code, ReadAll(cubin));
  if (!code.starts_with("\x7f"
                        "ELF"))
    return Status(StatusCode::kFailed, ptxas + ": what it wrote is no machine code");
  return code;
}

}  // namespace ingot::codegen
