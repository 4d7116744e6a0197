// A folder of entries: what is found is what was stored, whatever happens to the folder meanwhile.
#include "compiler/kernels/cache_directory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace ingot::kernels {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test case; the cache is a folder in it.
class CacheFolder {
 public:
  CacheFolder() {
    std::string path = (fs::temp_directory_path() / "ingot-cache-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    root_ = path;
  }
  ~CacheFolder() { fs::remove_all(root_); }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  fs::path root() const { return root_; }
  fs::path path() const { return root_ / "cache"; }
  fs::path entry(std::string_view key) const { return path() / CacheDirectory::EntryName(key); }
  std::unique_ptr<CacheDirectory> Open(int64_t max_bytes = CacheDirectory::kDefaultMaxBytes,
                                       formats::FileCalls& calls = formats::FileCalls::System()) const {
    Result<std::unique_ptr<CacheDirectory>> cache = CacheDirectory::Open(path(), max_bytes, calls);
    REQUIRE_MESSAGE(cache.ok(), cache.status().message());
    return *std::move(cache);
  }
  // On the disk, in whole blocks.
  int64_t TotalBytes() const {
    int64_t total = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(path())) {
      total += (static_cast<int64_t>(file.file_size()) + 4095) / 4096 * 4096;
    }
    return total;
  }
  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path()), fs::directory_iterator()));
  }

 private:
  fs::path root_;
};

std::vector<std::byte> Contents(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
  REQUIRE(ReadFile(path) == text);
}

TEST_CASE("a cache finds what was stored under the key, also in another process's folder object") {
  const CacheFolder folder;
  const auto cache = folder.Open();
  CHECK(!cache->Find("one"));
  cache->Store("one", Contents("first"));
  cache->Store("two", Contents(""));
  CHECK(cache->Find("one") == Contents("first"));
  CHECK(folder.Open()->Find("one") == Contents("first"));
  CHECK(folder.Open()->Find("two") == Contents(""));
  CHECK(!folder.Open()->Find("on"));
  cache->Store("one", Contents("another"));
  CHECK(cache->Find("one") == Contents("another"));
  CHECK(cache->Finish().ok());
  CHECK(cache->figures().hits == 2);
  CHECK(cache->figures().misses == 1);
  CHECK(cache->figures().damaged == 0);
  CHECK(cache->figures().stored == 3);
  CHECK(folder.NumFiles() == 3);  // with the ledger; no temporary stays
}

TEST_CASE("the folder is made for the user alone, whatever the umask is") {
  const CacheFolder folder;
  const mode_t before = umask(0);
  const Result<std::unique_ptr<CacheDirectory>> cache = CacheDirectory::Open(folder.root() / "a/b/c/");
  umask(before);
  REQUIRE_MESSAGE(cache.ok(), cache.status().message());
  (*cache)->Store("key", Contents("x"));
  for (const char* made : {"a", "a/b", "a/b/c"}) {
    CHECK(fs::status(folder.root() / made).permissions() == fs::perms::owner_all);
  }
  const fs::path entry = folder.root() / "a/b/c" / CacheDirectory::EntryName("key");
  CHECK(fs::status(entry).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a folder that others may enter or write to is refused, and so is another user's") {
  const CacheFolder folder;
  fs::create_directory(folder.path());
  for (const mode_t mode : {0710, 0720, 0701, 0740, 0755, 0777, 01777}) {
    CAPTURE(mode);
    REQUIRE(chmod(folder.path().c_str(), mode) == 0);
    const Status status = CacheDirectory::Open(folder.path()).status();
    CHECK(status.message().find("open to other users") != std::string::npos);
  }
  REQUIRE(chmod(folder.path().c_str(), 0700) == 0);
  CHECK(CacheDirectory::Open(folder.path()).ok());
  fs::path foreign = "/usr";  // the superuser's
  if (geteuid() == 0) {
    foreign = folder.path();
    REQUIRE(chown(foreign.c_str(), 12345, 0) == 0);
  }
  const Status status = CacheDirectory::Open(foreign).status();
  CHECK(status.message().find("another user's") != std::string::npos);
  WriteFile(folder.root() / "file", "x");
  CHECK(!CacheDirectory::Open(folder.root() / "file").ok());
  CHECK(!CacheDirectory::Open(folder.root() / "file/below").ok());
}

TEST_CASE("a damaged or foreign entry is none, and the next store replaces it") {
  const std::string key = "the key", contents = "what was stored";
  const CacheFolder folder;
  folder.Open()->Store(key, Contents(contents));
  folder.Open()->Store("another key", Contents("what belongs to it"));
  const std::string whole = ReadFile(folder.entry(key)), other = ReadFile(folder.entry("another key"));
  const fs::path entry = folder.entry(key);
  const auto check_is_replaced = [&](const char* how) {
    CAPTURE(how);
    const auto cache = folder.Open();
    CHECK(!cache->Find(key));
    CHECK(cache->figures().damaged == 1);
    cache->Store(key, Contents(contents));
    CHECK(cache->problem().ok());
    CHECK(cache->Find(key) == Contents(contents));
    CHECK(ReadFile(entry) == whole);
  };
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteFile(entry, whole.substr(0, length));
    check_is_replaced("cut short");
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 7}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      WriteFile(entry, changed);
      check_is_replaced("a changed byte");
    }
  }
  WriteFile(entry, whole + '\0');
  check_is_replaced("a byte more");
  WriteFile(entry, other);
  check_is_replaced("another key's");
  fs::remove(entry);
  fs::create_symlink(folder.entry("another key"), entry);
  check_is_replaced("a link");
  CHECK(ReadFile(folder.entry("another key")) == other);
  fs::remove(entry);
  REQUIRE(mkfifo(entry.c_str(), 0600) == 0);
  check_is_replaced("a pipe");
  REQUIRE(chmod(entry.c_str(), 0620) == 0);
  check_is_replaced("one that others may write to");
}

TEST_CASE("the folder keeps its bound, and what was unused for longest goes first") {
  constexpr int64_t kBound = 20 * 4096;
  const CacheFolder folder;
  const auto cache = folder.Open(kBound);
  int64_t seconds = 1'000'000;
  for (int i = 0; i < 60; ++i) {
    const std::string key = std::to_string(i);
    cache->Store(key, std::vector<std::byte>(i % 3 == 0 ? 5000 : 100));
    CHECK(folder.TotalBytes() <= kBound);
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ++seconds;
    REQUIRE(utimensat(AT_FDCWD, folder.entry(key).c_str(), times, 0) == 0);
    if (i >= 3) CHECK(cache->Find("3"));  // which makes it new
  }
  CHECK(cache->Find("59"));
  CHECK(!cache->Find("0"));
  CHECK(cache->figures().evicted > 30);
  cache->Store("large", std::vector<std::byte>(kBound));  // goes nowhere
  CHECK(cache->Find("59"));
  CHECK(cache->Finish().ok());
}

TEST_CASE("the bound holds over what others stored, and touches nothing that is no entry") {
  const CacheFolder folder;
  const auto first = folder.Open(1 << 20), second = folder.Open(10 * 4096);
  second->Store("mine", Contents("x"));
  for (int i = 0; i < 40; ++i) first->Store(std::to_string(i), Contents("x"));
  WriteFile(folder.path() / "notes.txt", "the user's own");
  const fs::path abandoned = folder.path() / ("." + CacheDirectory::EntryName("x") + ".1-1.tmp");
  const fs::path in_work = folder.path() / ("." + CacheDirectory::EntryName("x") + ".1-2.tmp");
  WriteFile(abandoned, "x");
  WriteFile(in_work, "x");
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, abandoned.c_str(), long_ago, 0) == 0);
  CHECK(second->Finish().ok());
  CHECK(folder.TotalBytes() <= 11 * 4096);
  CHECK(fs::exists(folder.path() / "notes.txt"));
  CHECK(!fs::exists(abandoned));
  CHECK(fs::exists(in_work));
}

// A disk that becomes full after a number of bytes, or cannot be read.
class FailingCalls : public formats::FileCalls {
 public:
  int64_t bytes_left = 0;
  bool reads_fail = false;
  ssize_t Write(int fd, const void* data, size_t size) override {
    if (bytes_left == 0) {
      errno = ENOSPC;
      return -1;
    }
    const auto count = std::min(static_cast<int64_t>(size), bytes_left);
    bytes_left -= count;
    return FileCalls::Write(fd, data, static_cast<size_t>(count));
  }
  ssize_t Read(int fd, void* data, size_t size) override {
    errno = EIO;
    return reads_fail ? -1 : FileCalls::Read(fd, data, size);
  }
};

TEST_CASE("a full disk is said once, leaves nothing half, and finding goes on") {
  for (const int64_t bytes : {0, 1, 100, 250}) {
    CAPTURE(bytes);
    const CacheFolder folder;
    folder.Open()->Store("old", Contents("kept"));
    FailingCalls calls;
    const auto cache = folder.Open(1 << 20, calls);
    calls.bytes_left = bytes;
    cache->Store("new", std::vector<std::byte>(1000));
    CHECK(cache->problem().message().find("No space left") != std::string::npos);
    CHECK(folder.NumFiles() == 2);
    calls.bytes_left = 1 << 20;
    cache->Store("newer", Contents("x"));  // nothing more is tried
    CHECK(folder.NumFiles() == 2);
    CHECK(cache->Find("old") == Contents("kept"));
    CHECK(!cache->Find("new"));
    CHECK(!cache->Finish().ok());
    CHECK(cache->figures().stored == 0);
  }
}

TEST_CASE("what a killed process of the same id left half written keeps nothing from being stored") {
  const CacheFolder folder;
  const auto cache = folder.Open();
  const std::string left = "." + CacheDirectory::EntryName("one") + "." + std::to_string(getpid());
  for (const char* end : {"-0.tmp", "-1.tmp"}) WriteFile(folder.path() / (left + end), "half");
  cache->Store("one", Contents("first"));
  CHECK_MESSAGE(cache->problem().ok(), cache->problem().message());
  CHECK(cache->Find("one") == Contents("first"));
  CHECK(folder.NumFiles() == 4);
}

TEST_CASE("an entry that cannot be read is none") {
  const CacheFolder folder;
  folder.Open()->Store("old", Contents("kept"));
  FailingCalls calls;
  calls.reads_fail = true;
  CHECK(!folder.Open(1 << 20, calls)->Find("old"));
}

TEST_CASE("threads and processes share a folder: whoever finds something finds the right thing") {
  constexpr int64_t kBound = 50 * 4096;
  const CacheFolder folder;
  const auto contents_of = [](int key) { return std::vector<std::byte>(100 + 37 * key, static_cast<std::byte>(key)); };
  const auto work = [&](CacheDirectory& cache, int seed) {
    bool right = true;
    for (int i = 0; i < 400; ++i) {
      const int key = (i * 7 + seed * 13) % 97;
      const auto found = cache.Find(std::to_string(key));
      right = right && (!found || *found == contents_of(key));
      if (!found) cache.Store(std::to_string(key), contents_of(key));
    }
    return right && cache.Finish().ok();
  };
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      const Result<std::unique_ptr<CacheDirectory>> cache = CacheDirectory::Open(folder.path(), kBound);
      if (!cache.ok()) _exit(2);
      bool rights[2] = {};
      std::thread thread([&] { rights[0] = work(**cache, 2 * child); });
      rights[1] = work(**cache, 2 * child + 1);
      thread.join();
      _exit(rights[0] && rights[1] && (*cache)->figures().damaged == 0 ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  constexpr int64_t kInWork = 8 * 2 * 4096;  // what eight threads may have been writing while somebody counted
  CHECK(folder.TotalBytes() <= kBound + kInWork);
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    CHECK((file.path().extension() == ".entry" || file.path().filename() == BlockLedger::kName));
  }
}

int64_t LedgerBytes(const CacheFolder& folder) {
  return static_cast<int64_t>(fs::file_size(folder.path() / BlockLedger::kName)) * BlockLedger::kBlockBytes;
}

TEST_CASE("entries are not counted as long as the ledger is within the bound") {
  const CacheFolder folder;
  folder.Open()->Store("one", Contents("x"));
  CHECK(LedgerBytes(folder) == 4096);
  // An entry that no store wrote is not seen before the bound is met, then it is.
  const fs::path strange = folder.entry("of nobody");
  WriteFile(strange, std::string(100'000, 'x'));
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, strange.c_str(), long_ago, 0) == 0);
  const auto cache = folder.Open(12 * 4096);
  for (int i = 0; i < 5; ++i) cache->Store(std::to_string(i), Contents("x"));
  CHECK(cache->Finish().ok());
  CHECK(LedgerBytes(folder) == 6 * 4096);
  CHECK(fs::exists(strange));
  for (int i = 0; i < 8; ++i) cache->Store("more " + std::to_string(i), Contents("x"));
  CHECK(!fs::exists(strange));
  CHECK(cache->figures().evicted == 1 + 13 - 9);  // a quarter of the bound, less the ledger's block
  CHECK(LedgerBytes(folder) + 4096 == folder.TotalBytes());
}

TEST_CASE("a folder without a usable ledger is counted anew") {
  const CacheFolder folder;
  for (int i = 0; i < 9; ++i) folder.Open()->Store(std::to_string(i), Contents("x"));
  const fs::path ledger = folder.path() / BlockLedger::kName;
  const fs::path elsewhere = folder.root() / "elsewhere";
  WriteFile(elsewhere, "the user's");
  const std::vector<std::pair<const char*, std::function<void()>>> kinds = {
      {"none", [] {}},
      {"a link", [&] { fs::create_symlink(elsewhere, ledger); }},
      {"a pipe", [&] { REQUIRE(mkfifo(ledger.c_str(), 0600) == 0); }},
      {"one that others may write to", [&] {
         WriteFile(ledger, "");
         REQUIRE(chmod(ledger.c_str(), 0622) == 0);
       }}};
  int stored = 9;
  for (const auto& [kind, make] : kinds) {
    CAPTURE(kind);
    fs::remove(ledger);
    make();
    const auto cache = folder.Open();
    cache->Store(std::to_string(stored++), Contents("x"));
    CHECK_MESSAGE(cache->Finish().ok(), cache->problem().message());
    CHECK(fs::symlink_status(ledger).type() == fs::file_type::regular);
    CHECK(LedgerBytes(folder) == stored * 4096);
  }
  CHECK(ReadFile(elsewhere) == "the user's");
  fs::remove(ledger);
  fs::create_directory(ledger);
  const auto cache = folder.Open();
  cache->Store("no more", Contents("x"));
  CHECK(cache->problem().message().find("number of its blocks") != std::string::npos);
}

TEST_CASE("what is added to a ledger while somebody counts stays") {
  const CacheFolder folder;
  folder.Open()->Store("one", Contents("x"));
  const int descriptor = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  BlockLedger ledger(descriptor, folder.path(), formats::FileCalls::System());
  CHECK(ledger.Blocks() == 2);
  {
    BlockLedger::Recount recount(ledger);
    CHECK(*ledger.Add(70'000) == 70'001 + 18);
    CHECK(recount.Finish(5).ok());
  }
  CHECK(ledger.Blocks() == 70'005 + 18);
  {
    BlockLedger::Recount abandoned(ledger);
  }
  CHECK(ledger.Blocks() == 70'005 + 18);
  close(descriptor);
}

TEST_CASE("the default folder follows the environment") {
  const auto with = [](const char* cache, const char* home) {
    const char* before_cache = std::getenv("XDG_CACHE_HOME");
    const char* before_home = std::getenv("HOME");
    const std::string kept_cache = before_cache == nullptr ? "" : before_cache;
    const std::string kept_home = before_home == nullptr ? "" : before_home;
    cache == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache, 1);
    home == nullptr ? unsetenv("HOME") : setenv("HOME", home, 1);
    const Result<std::string> found = DefaultCacheDirectory();
    before_cache == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", kept_cache.c_str(), 1);
    before_home == nullptr ? unsetenv("HOME") : setenv("HOME", kept_home.c_str(), 1);
    return found.ok() ? *found : "none";
  };
  CHECK(with("/c", "/h") == "/c/ingot");
  CHECK(with("", "/h") == "/h/.cache/ingot");
  CHECK(with("relative", "/h") == "/h/.cache/ingot");
  CHECK(with(nullptr, "/h") == "/h/.cache/ingot");
  CHECK(with(nullptr, "h") == "none");
  CHECK(with(nullptr, nullptr) == "none");
}

}  // namespace
}  // namespace ingot::kernels
