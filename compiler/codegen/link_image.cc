// lld is called as a library, with the objects in memory files (memfd) and its output in a pipe: nothing touches the
// disk.
#include "compiler/codegen/link_image.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
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
    reader_ = std::thread([this] { ReadAll(); });
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
    eventfd_write(done_, 1);
    reader_.join();
  }
  void ReadAll() {
    std::byte buffer[1 << 16];
    pollfd events[2] = {{ends_[0], POLLIN, 0}, {done_, POLLIN, 0}};
    for (;;) {
      if (poll(events, 2, -1) < 0 && errno != EINTR) {
        error_ = errno;
        return;
      }
      const bool is_done = (events[1].revents & POLLIN) != 0;  // whatever was written is in the pipe by now
      const ssize_t count = read(ends_[0], buffer, sizeof(buffer));
      if (count < 0 && errno == EAGAIN && is_done) return;
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) error_ = errno;
      if (count <= 0) return;
      bytes_.insert(bytes_.end(), buffer, buffer + count);
    }
  }

  int ends_[2] = {-1, -1};
  int done_ = -1;  // an event
  int error_ = 0;
  std::vector<std::byte> bytes_;
  std::thread reader_;
};

}  // namespace

Result<std::vector<std::byte>> LinkImage(std::span<const std::string* const> objects) {
  static std::mutex lld_lock;  // lld's state is global; two links at once crash
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
    llvm::raw_string_ostream stream(messages);
    code = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}}).retCode;
  }
  if (code != 0) return Status(StatusCode::kUnsupportedModel, "linking the kernel image failed: " + messages);
  return output.Finish();
}

}  // namespace ingot::codegen
