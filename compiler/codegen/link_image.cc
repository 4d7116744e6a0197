// lld is called as a library, with the objects in memory files (memfd) and its output in a pipe: nothing touches the
// disk. Where lld or LLVM would end the process, the link fails instead.
#include "compiler/codegen/link_image.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

LLD_HAS_DRIVER(elf)

namespace ingot::codegen {
namespace {

Status Io(const char* what) { return Status(StatusCode::kIo, std::string(what) + ": " + std::strerror(errno)); }

// A file in memory that has a path, so that lld can open it by name.
class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  MemoryFile& operator=(MemoryFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }

  static Result<MemoryFile> Create() {
    MemoryFile file;
    file.fd_ = memfd_create("ingot", MFD_CLOEXEC);
    if (file.fd_ < 0) return Io("cannot create a file in memory");
    return file;
  }
  Status Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Io("cannot write a file in memory");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return Status();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_ = -1;
};

// Receives lld's output. lld would write a regular file under another name and rename it, so its output goes through a
// pipe, which a thread empties while lld fills it. The thread ends when it is told that lld is done: lld's descriptor
// may be open still, when closing it failed.
class OutputPipe {
 public:
  ~OutputPipe() {
    StopReader();
    for (const int fd : {ends_[0], ends_[1], done_}) {
      if (fd >= 0) close(fd);
    }
  }

  Status Open() {
    if (pipe2(ends_, O_CLOEXEC) != 0 || fcntl(ends_[0], F_SETFL, O_NONBLOCK) != 0) return Io("cannot create a pipe");
    done_ = eventfd(0, EFD_CLOEXEC);
    if (done_ < 0) return Io("cannot create an event");
    try {
      reader_ = std::thread([this] { ReadAll(); });
    } catch (const std::system_error&) {
      return Status::OutOfMemory("the system gives no thread for linking");
    }
    return Status();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[1]); }
  // Returns everything that was written.
  Result<std::vector<std::byte>> Finish() {
    StopReader();
    if (error_ != 0) {
      errno = error_;
      return Io("cannot read from a pipe");
    }
    return std::move(bytes_);
  }

 private:
  void StopReader() {
    if (!reader_.joinable()) return;
    is_done_ = true;
    eventfd_write(done_, 1);  // only lets the thread know sooner
    reader_.join();
  }
  void ReadAll() {
    std::byte buffer[1 << 16];
    pollfd events[2] = {{ends_[0], POLLIN, 0}, {done_, POLLIN, 0}};
    for (;;) {
      if (poll(events, 2, kPollMilliseconds) < 0 && errno != EINTR) {
        error_ = errno;
        return;
      }
      const bool is_done = is_done_;  // then whatever was written is in the pipe by now
      const ssize_t count = read(ends_[0], buffer, sizeof(buffer));
      if (count < 0 && errno == EAGAIN && is_done) return;
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) error_ = errno;
      if (count <= 0) return;
      bytes_.insert(bytes_.end(), buffer, buffer + count);
    }
  }

  static constexpr int kPollMilliseconds = 100;
  int ends_[2] = {-1, -1};
  int done_ = -1;  // an event
  std::atomic<bool> is_done_{false};
  int error_ = 0;
  std::vector<std::byte> bytes_;
  std::thread reader_;
};

// What LLVM calls before it would end the process, such as when its output cannot be written: the link ends instead, as
// after an error that lld finds fatal. On another thread than the link's there is nothing to end, and LLVM goes on.
void EndLink(void* messages, const char* reason, bool) {
  llvm::CrashRecoveryContext* link = llvm::CrashRecoveryContext::GetCurrent();
  if (link == nullptr) return;
  static_cast<std::string*>(messages)->append(reason);
  link->HandleExit(1);
}

// lld's state is global: two links at once crash, so the caller holds a lock.
int RunLld(std::span<const char* const> arguments, std::string& messages) {
  llvm::raw_string_ostream stream(messages);
  llvm::CrashRecoveryContext::Enable();
  int code = 1;
  {
    const llvm::ScopedFatalErrorHandler handler(EndLink, &messages);
    code = lld::lldMain({arguments.data(), arguments.size()}, stream, stream, {{lld::Gnu, &lld::elf::link}}).retCode;
  }
  llvm::CrashRecoveryContext::Disable();
  return code;
}

}  // namespace

Result<std::vector<std::byte>> LinkImage(std::span<const std::string* const> objects) {
  static std::mutex lld_lock;
  std::vector<MemoryFile> inputs;
  for (const std::string* object : objects) {
    INGOT_ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create());
    INGOT_RETURN_IF_ERROR(file.Write(*object));
    inputs.push_back(std::move(file));
  }
  OutputPipe output;
  INGOT_RETURN_IF_ERROR(output.Open());

  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-Bsymbolic",
                                        "--no-undefined",
                                        "--no-rosegment",  // code and read-only data in one segment,
                                        "-z",
                                        "rodynamic",  // the dynamic section too:
                                        "-z",
                                        "norelro",  // nothing is ever written
                                        "-z",
                                        "text",
                                        "--gc-sections",
                                        "--strip-all",
                                        "--build-id=none",
                                        "--hash-style=gnu",
                                        "--no-eh-frame-hdr",
                                        "--icf=none",
                                        "--threads=1",
                                        "-o",
                                        output.path()};
  for (const MemoryFile& input : inputs) arguments.push_back(input.path());
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());

  std::string messages;
  int code = 1;
  {
    const std::lock_guard<std::mutex> guard(lld_lock);
    code = RunLld(pointers, messages);
  }
  // Symbols are resolved by now, so that no model can cause this, but a system that lacks something.
  if (code != 0) return Status(StatusCode::kIo, "linking the kernel image failed: " + messages);
  return output.Finish();
}

}  // namespace ingot::codegen
