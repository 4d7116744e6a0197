#include "formats/file.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "formats/byte_reader.h"

namespace ingot::formats {
namespace {

// A directory of its own, removed at the end.
struct Directory {
  std::string path;
  Directory() {
    char name[] = "/tmp/ingot-file-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Directory() {
    for (const std::string& name : Names()) unlink((path + "/" + name).c_str());
    rmdir(path.c_str());
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    DIR* directory = opendir(path.c_str());
    while (const dirent* entry = readdir(directory)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    closedir(directory);
    return names;
  }
};

std::string Contents(const std::string& path, ReadMode mode = ReadMode::kMap) {
  return std::string(AsText(InputFile::Open(path, mode).value()->bytes()));
}

TEST_CASE("files are written whole and read back, mapped or copied") {
  Directory directory;
  const std::string path = directory.path + "/a.bin";
  REQUIRE(WriteFileAtomically(path, AsBytes("hello")).ok());
  CHECK(Contents(path) == "hello");
  CHECK(Contents(path, ReadMode::kCopy) == "hello");
  CHECK(InputFile::Open(path, ReadMode::kMap).value()->fd() >= 0);
  CHECK(InputFile::Open(path, ReadMode::kCopy).value()->fd() == -1);
  REQUIRE(WriteFileAtomically(path, {}).ok());
  CHECK(Contents(path).empty());
  CHECK(directory.Names().size() == 1);
}

TEST_CASE("a replaced file keeps its permissions, a link its target") {
  Directory directory;
  const std::string path = directory.path + "/a.bin";
  const std::string link = directory.path + "/link";
  REQUIRE(WriteFileAtomically(path, AsBytes("1")).ok());
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  REQUIRE(symlink("a.bin", link.c_str()) == 0);
  REQUIRE(WriteFileAtomically(link, AsBytes("2")).ok());
  CHECK(Contents(path) == "2");
  struct stat info {};
  REQUIRE(lstat(link.c_str(), &info) == 0);
  CHECK(S_ISLNK(info.st_mode));
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
}

TEST_CASE("a pipe is refused at once, whether or not somebody writes it") {
  Directory directory;
  const std::string path = directory.path + "/pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(InputFile::Open(path).status().message() == path + ": cannot read: not a regular file");
  const int writer = open(path.c_str(), O_RDWR);
  CHECK(InputFile::Open(path, ReadMode::kCopy).status().code() == StatusCode::kIo);
  close(writer);
}

TEST_CASE("programs become executable for whoever may read them") {
  Directory directory;
  const std::string path = directory.path + "/program";
  OutputFile file = OutputFile::Create(path).value();
  REQUIRE(file.MakeExecutable().ok());
  REQUIRE(file.Commit().ok());
  CHECK(access(path.c_str(), X_OK) == 0);
}

TEST_CASE("dropped output leaves nothing, and the old file stays") {
  Directory directory;
  const std::string path = directory.path + "/a.bin";
  REQUIRE(WriteFileAtomically(path, AsBytes("old")).ok());
  {
    OutputFile file = OutputFile::Create(path).value();
    REQUIRE(file.Write(AsBytes("new")).ok());
    CHECK(Contents(path) == "old");
    CHECK(directory.Names().size() == 2);
  }
  CHECK(Contents(path) == "old");
  CHECK(directory.Names().size() == 1);
}

TEST_CASE("what is no regular file is written to directly") {
  CHECK(WriteFileAtomically("/dev/null", AsBytes("x")).ok());
  CHECK(access("/dev/null", F_OK) == 0);
}

TEST_CASE("errors name the path and the reason") {
  Directory directory;
  const Status missing = InputFile::Open(directory.path + "/none").status();
  CHECK(missing.code() == StatusCode::kIo);
  CHECK(missing.message() == directory.path + "/none: cannot open: No such file or directory");
  CHECK(InputFile::Open(directory.path).status().code() == StatusCode::kIo);
  CHECK(InputFile::Open("/dev/null").status().code() == StatusCode::kIo);
  CHECK_FALSE(WriteFileAtomically(directory.path + "/none/a", {}).ok());
  CHECK_FALSE(WriteFileAtomically(directory.path, {}).ok());
}

// Lets the k-th call fail with an error, or be interrupted once, or (for reads and writes) be short every time.
class FaultyCalls : public FileCalls {
 public:
  int fail_at = 0;  // 1-based; 0: never
  int error = EIO;
  bool is_short = false;
  int calls = 0;

  int Open(const char* path, int flags, mode_t mode) override {
    return Fails() ? -1 : FileCalls::Open(path, flags, mode);
  }
  ssize_t Read(int fd, void* data, size_t size) override {
    return Fails() ? -1 : FileCalls::Read(fd, data, is_short ? 1 : size);
  }
  ssize_t Write(int fd, const void* data, size_t size) override {
    return Fails() ? -1 : FileCalls::Write(fd, data, is_short ? 1 : size);
  }
  int Fsync(int fd) override { return Fails() ? -1 : FileCalls::Fsync(fd); }
  int Close(int fd) override {
    const int result = FileCalls::Close(fd);  // the descriptor goes even when an error is reported
    return Fails() ? -1 : result;
  }
  int Rename(const char* from, const char* to) override { return Fails() ? -1 : FileCalls::Rename(from, to); }

 private:
  bool Fails() {
    if (++calls != fail_at) return false;
    errno = error;
    return true;
  }
};

TEST_CASE("whichever call fails, the file is the old or the new one, and no temporary stays") {
  for (const int error : {EIO, ENOSPC, EINTR}) {
    for (int fail_at = 1;; ++fail_at) {
      CAPTURE(error);
      CAPTURE(fail_at);
      Directory directory;
      const std::string path = directory.path + "/a.bin";
      REQUIRE(WriteFileAtomically(path, AsBytes("old")).ok());
      FaultyCalls calls;
      calls.fail_at = fail_at;
      calls.error = error;
      const Status status = WriteFileAtomically(path, AsBytes("new"), calls);
      CHECK(directory.Names() == std::vector<std::string>{"a.bin"});
      const std::string contents = Contents(path);
      CHECK((contents == "old" || contents == "new"));
      if (status.ok()) CHECK(contents == "new");
      if (calls.calls < fail_at) {
        CHECK(status.ok());
        CHECK(fail_at > 5);
        break;
      }
      if (error == EINTR && fail_at != 5) CHECK(status.ok());  // the rename itself is not interruptible
    }
  }
}

TEST_CASE("short reads and writes are continued") {
  Directory directory;
  const std::string path = directory.path + "/a.bin";
  FaultyCalls calls;
  calls.is_short = true;
  REQUIRE(WriteFileAtomically(path, AsBytes("twelve bytes"), calls).ok());
  const auto file = InputFile::Open(path, ReadMode::kCopy, calls).value();
  CHECK(AsText(file->bytes()) == "twelve bytes");
  for (int fail_at = 1; fail_at < 13; ++fail_at) {
    FaultyCalls failing;
    failing.fail_at = fail_at;
    CHECK(InputFile::Open(path, ReadMode::kCopy, failing).ok() == (fail_at > 2));
    failing.calls = 0;
    failing.error = EINTR;
    CHECK(InputFile::Open(path, ReadMode::kCopy, failing).ok());
  }
}

}  // namespace
}  // namespace ingot::formats
