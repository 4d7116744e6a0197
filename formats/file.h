// Files, in and out. In: mapped read-only or copied to private memory. Out: whole or not at all: a temporary in the
// same directory, write, fsync, rename, fsync of the directory; the temporary is removed on every failure. Short
// reads and writes and EINTR are handled. Errors name the path and say what the operating system said.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/host_allocator.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot::formats {

// The system calls that reading and writing make, replaceable so that tests can let each fail. Each returns what the
// call returns and sets errno.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int Open(const char* path, int flags, mode_t mode);
  virtual ssize_t Read(int fd, void* data, size_t size);
  virtual ssize_t Write(int fd, const void* data, size_t size);
  virtual int Fsync(int fd);
  virtual int Close(int fd);
  virtual int Rename(const char* from, const char* to);
  virtual int Unlink(const char* path);
  static FileCalls& System();
};

enum class ReadMode {
  kMap,   // shared pages; the file must not be changed meanwhile (truncating it means SIGBUS on access)
  kCopy,  // private memory, independent of the file from then on
};

// An open file and its bytes. Thread-safe.
class InputFile {
 public:
  static Result<std::shared_ptr<const InputFile>> Open(const std::string& path, ReadMode mode = ReadMode::kMap,
                                                       FileCalls& calls = FileCalls::System());
  // A file named by a relative path that a foreign file holds: it must lie beneath the directory. An absolute path,
  // "..", a symbolic link that leads outside, and a file with other hard links (it may be anyone's) are kBadInput.
  static Result<std::shared_ptr<const InputFile>> OpenBeneath(const std::string& directory, const std::string& relative,
                                                              ReadMode mode = ReadMode::kMap);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // The descriptor of a mapped file, for mapping parts of it in other ways; -1 for a copy.
  int fd() const { return fd_; }
  // Bytes that keep the file open.
  static SharedBytes Share(std::shared_ptr<const InputFile> file) {
    const std::span<const std::byte> bytes = file->bytes();
    return {std::move(file), bytes};
  }

 private:
  InputFile() = default;
  Status Read(ReadMode mode, FileCalls& calls);  // of fd_
  std::string path_;
  static constexpr size_t kCopyAlignment = 64;  // as constants have it in a mapped file
  struct FreeCopy {
    size_t size_bytes;
    void operator()(std::byte* copy) const { FreeAligned(copy, size_bytes, kCopyAlignment); }
  };
  std::span<const std::byte> bytes_;
  std::unique_ptr<std::byte, FreeCopy> copy_;
  void* mapping_ = nullptr;
  int fd_ = -1;
};

// The whole file as mapped bytes.
Result<SharedBytes> MapFile(const std::string& path);

// Writes a file whole or not at all. Dropped without Commit it leaves nothing behind. A symbolic link is followed; a
// target that is no regular file (a terminal, a pipe, /dev/null) is written to directly.
class OutputFile {
 public:
  static Result<OutputFile> Create(const std::string& path, FileCalls& calls = FileCalls::System());
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  Status Write(std::span<const std::byte> bytes);
  Status WriteZeros(uint64_t count);
  // Lets everybody execute the file who may read it.
  Status MakeExecutable();
  // Flushes the file to the disk and puts it in the place of its target. Nothing may be written afterwards.
  Status Commit();

 private:
  OutputFile() = default;
  Status Fail(const char* action) const;
  void Abandon();

  FileCalls* calls_ = nullptr;
  std::string path_;            // of the target, links resolved
  std::string temporary_path_;  // empty when the target is written to directly
  int fd_ = -1;
};

// Makes a rename in the file's directory last, where the file system can.
Status SyncDirectoryOf(const std::string& path, FileCalls& calls = FileCalls::System());
Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes,
                           FileCalls& calls = FileCalls::System());

}  // namespace ingot::formats
