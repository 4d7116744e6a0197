// The system calls behind InputFile and OutputFile. OpenBeneath uses openat2, or opens one component after the other
// where the kernel lacks it; OutputFile writes to a temporary file and renames it when it is complete.
#include "formats/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

namespace ingot::formats {
namespace {

// The most bytes that one call is asked to read or write; Linux moves less than 2 GiB at a time anyway.
constexpr size_t kMaxChunkBytes = size_t{1} << 30;
constexpr int kTemporaryAttempts = 100;

Status SystemError(const std::string& path, const char* action) {
  const int error = errno;
  const StatusCode code = error == ENOMEM ? StatusCode::kOutOfMemory : StatusCode::kIo;
  return Status(code, {path, ": cannot ", action, ": ", std::strerror(error)});
}

int OpenRetrying(FileCalls& calls, const char* path, int flags, mode_t mode) {
  int fd;
  do {
    fd = calls.Open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Opens a relative path without leaving the directory. Where openat2 is missing (kernels before 5.6, sandboxes), it
// opens one component after the other and follows no symbolic link.
int OpenInside(int directory, const std::string& relative) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a pipe must not stop us
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long opened = syscall(SYS_openat2, directory, relative.c_str(), &how, sizeof how);
  if (opened >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(opened);
  int at = directory;
  for (size_t begin = 0; begin < relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string component = relative.substr(begin, end - begin);
    begin = end + 1;
    if (component.empty()) continue;
    const bool is_last = begin >= relative.size();
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | (is_last ? 0 : O_DIRECTORY);
    const int next = openat(at, component.c_str(), flags);
    const int error = errno;
    if (at != directory) close(at);
    errno = error;
    if (next < 0) return next;
    at = next;
  }
  return at == directory ? dup(directory) : at;
}

// A name beside the target that no other process or thread takes at the same time; O_EXCL settles the rest.
std::string TemporaryName(const std::string& path, int attempt) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return StrCat({path.substr(0, name), ".", path.substr(name, NAME_MAX / 2), ".", getpid(), "-", now.tv_nsec, "-",
                 attempt, ".tmp"});
}

}  // namespace

int FileCalls::Open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
ssize_t FileCalls::Read(int fd, void* data, size_t size) { return ::read(fd, data, size); }
ssize_t FileCalls::Write(int fd, const void* data, size_t size) { return ::write(fd, data, size); }
int FileCalls::Fsync(int fd) { return ::fsync(fd); }
int FileCalls::Close(int fd) { return ::close(fd); }
int FileCalls::Rename(const char* from, const char* to) { return ::rename(from, to); }
int FileCalls::Unlink(const char* path) { return ::unlink(path); }

FileCalls& FileCalls::System() {
  static FileCalls calls;  // has no state
  return calls;
}

Result<std::shared_ptr<const InputFile>> InputFile::Open(const std::string& path, ReadMode mode, FileCalls& calls) {
  std::shared_ptr<InputFile> file(new (std::nothrow) InputFile());
  if (file == nullptr) return Status::OutOfMemory();
  file->path_ = path;
  file->fd_ = OpenRetrying(calls, path.c_str(), O_RDONLY | O_NONBLOCK, 0);  // a pipe must not stop us
  if (file->fd_ < 0) return SystemError(path, "open");
  INGOT_RETURN_IF_ERROR(file->Read(mode, calls));
  return file;
}

Result<std::shared_ptr<const InputFile>> InputFile::OpenBeneath(const std::string& directory,
                                                                const std::string& relative, ReadMode mode) {
  const auto refuse = [&](const char* reason) {
    return Status(StatusCode::kBadInput, {"\"", relative, "\" ", reason});
  };
  if (relative.empty() || relative[0] == '/' || relative.find('\0') != std::string::npos) {
    return refuse("is no relative path");
  }
  for (size_t begin = 0; begin <= relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    if (relative.compare(begin, end - begin, "..") == 0) return refuse("leads outside of the folder");
    begin = end + 1;
  }
  std::shared_ptr<InputFile> file(new (std::nothrow) InputFile());
  if (file == nullptr) return Status::OutOfMemory();
  file->path_ = StrCat({directory, "/", relative});
  const int folder = OpenRetrying(FileCalls::System(), directory.c_str(), O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0) return SystemError(directory, "open");
  file->fd_ = OpenInside(folder, relative);
  const int error = errno;
  close(folder);
  if (file->fd_ < 0 && (error == ELOOP || error == EXDEV)) return refuse("leads outside of the folder by a link");
  errno = error;
  if (file->fd_ < 0) return SystemError(file->path_, "open");
  struct stat info {};
  if (fstat(file->fd_, &info) != 0) return SystemError(file->path_, "read");
  if (S_ISREG(info.st_mode) && info.st_nlink > 1)
    return refuse("has several hard links: it may be another folder's file");
  INGOT_RETURN_IF_ERROR(file->Read(mode, FileCalls::System()));
  return file;
}

Status InputFile::Read(ReadMode mode, FileCalls& calls) {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return SystemError(path_, "read");
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return SystemError(path_, "read");
  }
  if (!S_ISREG(info.st_mode)) return Status(StatusCode::kIo, {path_, ": cannot read: not a regular file"});
  const auto size = static_cast<size_t>(info.st_size);
  if (mode == ReadMode::kMap) {
    if (size == 0) return Status();
    void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (mapping == MAP_FAILED) return SystemError(path_, "map");
    mapping_ = mapping;
    bytes_ = {static_cast<const std::byte*>(mapping), size};
    return Status();
  }
  copy_ = {static_cast<std::byte*>(AllocateAligned(size, kCopyAlignment)), FreeCopy{size}};
  if (copy_ == nullptr) {
    return Status::OutOfMemory({path_, ": out of memory: ", size, " bytes requested"});
  }
  size_t done = 0;
  while (done < size) {
    const ssize_t count = calls.Read(fd_, copy_.get() + done, std::min(size - done, kMaxChunkBytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path_, "read");
    if (count == 0) return Status(StatusCode::kIo, {path_, ": cannot read: the file became shorter meanwhile"});
    done += static_cast<size_t>(count);
  }
  bytes_ = {copy_.get(), size};
  close(std::exchange(fd_, -1));
  return Status();
}

InputFile::~InputFile() {
  if (mapping_ != nullptr) munmap(mapping_, bytes_.size());
  if (fd_ >= 0) close(fd_);
}

Result<SharedBytes> MapFile(const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const InputFile> file, InputFile::Open(path));
  return InputFile::Share(std::move(file));
}

Result<OutputFile> OutputFile::Create(const std::string& path, FileCalls& calls) {
  OutputFile file;
  file.calls_ = &calls;
  file.path_ = path;
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) != nullptr) file.path_ = resolved;
  struct stat info {};
  const bool exists = stat(file.path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return SystemError(path, "write");
  }
  if (exists && !S_ISREG(info.st_mode)) {
    file.fd_ = OpenRetrying(calls, file.path_.c_str(), O_WRONLY, 0);
    if (file.fd_ < 0) return SystemError(path, "write");
    return file;
  }
  for (int attempt = 0; attempt < kTemporaryAttempts; ++attempt) {
    std::string temporary = TemporaryName(file.path_, attempt);
    file.fd_ = OpenRetrying(calls, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file.fd_ >= 0) file.temporary_path_ = std::move(temporary);
    if (file.fd_ >= 0 || errno != EEXIST) break;
  }
  if (file.fd_ < 0) return SystemError(path, "write");
  // A replaced file keeps its permissions.
  if (exists && fchmod(file.fd_, info.st_mode & 07777) != 0) return SystemError(path, "write");
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : calls_(other.calls_),
      path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  Abandon();
  calls_ = other.calls_;
  path_ = std::move(other.path_);
  temporary_path_ = std::exchange(other.temporary_path_, {});
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

OutputFile::~OutputFile() { Abandon(); }

void OutputFile::Abandon() {
  if (fd_ >= 0) calls_->Close(std::exchange(fd_, -1));
  if (!temporary_path_.empty()) calls_->Unlink(temporary_path_.c_str());
  temporary_path_.clear();
}

Status OutputFile::Fail(const char* action) const { return SystemError(path_, action); }

Status OutputFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = calls_->Write(fd_, bytes.data(), std::min(bytes.size(), kMaxChunkBytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail("write");
    if (count == 0) return Status(StatusCode::kIo, {path_, ": cannot write: nothing was taken"});
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Status();
}

Status OutputFile::WriteZeros(uint64_t count) {
  static constexpr std::byte kZeros[4096] = {};
  while (count > 0) {
    const uint64_t part = std::min<uint64_t>(count, sizeof(kZeros));
    INGOT_RETURN_IF_ERROR(Write({kZeros, part}));
    count -= part;
  }
  return Status();
}

Status OutputFile::MakeExecutable() {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return Fail("write");
  // Everybody who may read the file may execute it.
  const mode_t mode = (info.st_mode & 0777) | (info.st_mode & 0444) >> 2;
  return fchmod(fd_, mode) == 0 ? Status() : Fail("make executable");
}

Status OutputFile::Commit() {
  const bool is_direct = temporary_path_.empty();
  int result;
  if (!is_direct) {
    do {
      result = calls_->Fsync(fd_);
    } while (result != 0 && errno == EINTR);
    if (result != 0) return Fail("write");
  }
  // Close gives the descriptor back whatever it returns; EINTR after fsync loses nothing.
  result = calls_->Close(std::exchange(fd_, -1));
  if (result != 0 && errno != EINTR) return Fail("write");
  if (is_direct) return Status();
  if (calls_->Rename(temporary_path_.c_str(), path_.c_str()) != 0) return Fail("rename");
  temporary_path_.clear();
  return SyncDirectoryOf(path_, *calls_);
}

Status SyncDirectoryOf(const std::string& path, FileCalls& calls) {
  const int directory = OpenRetrying(calls, DirectoryOf(path).c_str(), O_RDONLY | O_DIRECTORY, 0);
  if (directory < 0) return SystemError(path, "sync the directory of");
  const int result = calls.Fsync(directory);
  const int error = errno;
  calls.Close(directory);
  errno = error;
  return result == 0 || error == EINVAL || error == EINTR ? Status() : SystemError(path, "sync the directory of");
}

Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes, FileCalls& calls) {
  INGOT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, calls));
  INGOT_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

}  // namespace ingot::formats
