// An entry is a magic number, the SHA-256 of all behind it, the key and the contents. Its name is the SHA-256 of the
// key. Entries are not flushed to the disk: one that a crash cut short is a damaged one.
#include "compiler/kernels/cache_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <tuple>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "formats/sha256.h"

namespace ingot::kernels {
namespace {

constexpr std::string_view kEntryMagic = "INGOTKC1";
constexpr std::string_view kEntrySuffix = ".entry", kTemporarySuffix = ".tmp";
constexpr size_t kNameDigits = 2 * std::tuple_size_v<formats::Sha256Digest>;
constexpr int64_t kMaxEntryBytes = int64_t{64} << 20;
constexpr int kMostTemporaries = 100;        // of one name that are tried
constexpr int64_t kAbandonedSeconds = 3600;  // the age at which a temporary is nobody's any more

Status CacheError(const std::string& path, const char* action) {
  return Status(StatusCode::kIo, {path, ": cannot ", action, ": ", std::strerror(errno)});
}

// A descriptor that is closed at the end of its scope.
class OpenDescriptor {
 public:
  OpenDescriptor(int fd, formats::FileCalls& calls) : fd_(fd), calls_(calls) {}
  OpenDescriptor(const OpenDescriptor&) = delete;
  OpenDescriptor& operator=(const OpenDescriptor&) = delete;
  ~OpenDescriptor() {
    if (fd_ >= 0) calls_.Close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
  formats::FileCalls& calls_;
};

// Makes the folder for the user alone, and those above it.
Status MakeDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string above = path.substr(0, end);
    if (mkdir(above.c_str(), 0700) != 0 && errno != EEXIST) {
      // Folders above may be there and be closed to writing, or be links to folders.
      const int error = errno;
      struct stat info {};
      if (stat(above.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
        errno = error;
        return CacheError(above, "make the folder");
      }
    }
    if (end == std::string::npos) return Status();
  }
}

bool IsUsersOwn(const struct stat& info, mode_t closed_to_others) {
  return info.st_uid == geteuid() && (info.st_mode & closed_to_others) == 0;
}

bool IsEntryName(std::string_view name) {
  return name.size() == kNameDigits + kEntrySuffix.size() && name.ends_with(kEntrySuffix) &&
         name.find_first_not_of("0123456789abcdef") == kNameDigits;
}

bool IsTemporaryName(std::string_view name) {
  return name.starts_with('.') && name.ends_with(kTemporarySuffix) && name.size() > kNameDigits;
}

std::vector<std::byte> EncodeEntry(std::string_view key, std::span<const std::byte> contents) {
  formats::ByteWriter body;
  body.String(key);
  body.Varint(contents.size());
  body.Bytes(contents);
  const formats::Sha256Digest digest = formats::Sha256Of(body.bytes());
  formats::ByteWriter entry;
  entry.Bytes(formats::AsBytes(kEntryMagic));
  entry.Bytes(std::as_bytes(std::span(digest)));
  entry.Bytes(body.bytes());
  return entry.Take();
}

Result<std::vector<std::byte>> DecodeEntry(std::span<const std::byte> bytes, std::string_view key) {
  formats::ByteReader reader(bytes, "cache entry");
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> magic, reader.Bytes(kEntryMagic.size()));
  if (formats::AsText(magic) != kEntryMagic) return reader.Error("it has another form");
  formats::Sha256Digest digest;
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> stored_digest, reader.Bytes(digest.size()));
  digest = formats::Sha256Of(bytes.subspan(reader.offset()));
  if (std::memcmp(digest.data(), stored_digest.data(), digest.size()) != 0) return reader.Error("it is damaged");
  INGOT_ASSIGN_OR_RETURN(const std::string_view stored_key, reader.String());
  if (stored_key != key) return reader.Error("it belongs to another key");
  INGOT_ASSIGN_OR_RETURN(const uint64_t size, reader.Count(1));
  INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> contents, reader.Bytes(size));
  INGOT_RETURN_IF_ERROR(reader.ExpectEnd());
  return std::vector<std::byte>(contents.begin(), contents.end());
}

}  // namespace

Result<std::unique_ptr<CacheDirectory>> CacheDirectory::Open(const std::string& path, int64_t max_bytes,
                                                             formats::FileCalls& calls) {
  INGOT_RETURN_IF_ERROR(MakeDirectories(path));
  OpenDescriptor folder(calls.Open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), calls);
  struct stat info {};
  if (folder.get() < 0 || fstat(folder.get(), &info) != 0) return CacheError(path, "open the folder");
  if (info.st_uid != geteuid()) return Status(StatusCode::kIo, {path, ": the folder is another user's"});
  if (!IsUsersOwn(info, 0077)) {
    return Status(StatusCode::kIo, {path, ": the folder is open to other users; chmod 700 closes it"});
  }
  return std::unique_ptr<CacheDirectory>(new CacheDirectory(path, folder.Release(), max_bytes, calls));
}

CacheDirectory::~CacheDirectory() { calls_.Close(descriptor_); }

std::string CacheDirectory::EntryName(std::string_view key) {
  std::string name = formats::ToHex(formats::Sha256Of(formats::AsBytes(key)));
  return name.append(kEntrySuffix);
}

std::optional<std::vector<std::byte>> CacheDirectory::Find(std::string_view key) {
  bool exists = false;
  std::optional<std::vector<std::byte>> contents = Read(EntryName(key), key, exists);
  ++(contents ? hits_ : misses_);
  if (exists && !contents) ++damaged_;
  return contents;
}

std::optional<std::vector<std::byte>> CacheDirectory::Read(const std::string& name, std::string_view key,
                                                           bool& exists) {
  // A pipe must not stop us, nor a link lead elsewhere.
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const OpenDescriptor file(openat(descriptor_, name.c_str(), flags), calls_);
  exists = file.get() >= 0 || errno != ENOENT;
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) || !IsUsersOwn(info, 0022) || info.st_size > kMaxEntryBytes) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = calls_.Read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  Result<std::vector<std::byte>> contents = DecodeEntry(bytes, key);
  if (!contents.ok()) return std::nullopt;
  futimens(file.get(), nullptr);  // where this fails, the entry only goes sooner
  return *std::move(contents);
}

void CacheDirectory::Store(std::string_view key, std::span<const std::byte> contents) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (!problem_.ok()) return;
  }
  const std::vector<std::byte> entry = EncodeEntry(key, contents);
  if (static_cast<int64_t>(entry.size()) > kMaxEntryBytes) return;
  if (!IsWithinBound(BlockLedger::BlocksOf(static_cast<int64_t>(entry.size())))) return;
  Status status = StoreEntry(EntryName(key), entry);
  const std::lock_guard<std::mutex> guard(lock_);
  if (!status.ok() && problem_.ok()) problem_ = std::move(status);
}

// The ledger comes first: a crash between the two must not leave an entry that it lacks.
Status CacheDirectory::StoreEntry(const std::string& name, std::span<const std::byte> entry) {
  INGOT_ASSIGN_OR_RETURN(const std::optional<int64_t> blocks,
                         ledger_.Add(BlockLedger::BlocksOf(static_cast<int64_t>(entry.size()))));
  INGOT_RETURN_IF_ERROR(Write(name, entry));
  ++stored_;
  return IsWithinBound(blocks) ? Status() : HoldBound();
}

Status CacheDirectory::Write(const std::string& name, std::span<const std::byte> entry) {
  // A process of the same id may have written one, or may be writing it: before a restart, or in another container.
  std::string temporary;
  int descriptor = -1;
  for (int attempt = 0; attempt < kMostTemporaries && descriptor < 0; ++attempt) {
    temporary = "." + name + "." + std::to_string(getpid()) + "-" + std::to_string(temporaries_++);
    temporary += kTemporarySuffix;
    descriptor = openat(descriptor_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  OpenDescriptor file(descriptor, calls_);
  if (file.get() < 0) return CacheError(path_, "write an entry");
  Status status;
  while (!entry.empty() && status.ok()) {
    const ssize_t count = calls_.Write(file.get(), entry.data(), entry.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      status = CacheError(path_, "write an entry");
    } else {
      entry = entry.subspan(static_cast<size_t>(count));
    }
  }
  if (calls_.Close(file.Release()) != 0 && errno != EINTR && status.ok()) status = CacheError(path_, "write an entry");
  if (status.ok() && renameat(descriptor_, temporary.c_str(), descriptor_, name.c_str()) != 0) {
    status = CacheError(path_, "rename an entry");
  }
  if (!status.ok()) unlinkat(descriptor_, temporary.c_str(), 0);
  return status;
}

bool CacheDirectory::IsWithinBound(std::optional<int64_t> blocks) const {
  return blocks && *blocks <= max_bytes_ / BlockLedger::kBlockBytes;
}

// Trims, where no other thread has done so meanwhile and no other process is at it: nobody waits for a process that may
// have been stopped.
Status CacheDirectory::HoldBound() {
  const std::lock_guard<std::mutex> guard(lock_);
  if (IsWithinBound(ledger_.Blocks())) return Status();
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return Status();
  Status status = Trim();
  flock(descriptor_, LOCK_UN);
  return status;
}

// Counts what is there, and takes away the entries that were unused for longest until a quarter of the bound is free,
// so that it is seldom counted.
Status CacheDirectory::Trim() {
  BlockLedger::Recount recount(ledger_);
  const int folder = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = folder < 0 ? nullptr : fdopendir(folder);
  if (listing == nullptr) {
    const Status status = CacheError(path_, "list the folder");
    if (folder >= 0) calls_.Close(folder);
    return status;
  }
  struct Entry {
    timespec used;
    int64_t blocks;
    std::string name;
  };
  std::vector<Entry> entries;
  int64_t total = 0;  // in blocks
  const time_t now = time(nullptr);
  while (const dirent* found = readdir(listing)) {
    const std::string name = found->d_name;
    const bool is_temporary = IsTemporaryName(name);
    if (!is_temporary && !IsEntryName(name)) continue;  // nothing of ours
    struct stat info {};
    if (fstatat(descriptor_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(info.st_mode)) continue;
    if (is_temporary && now - info.st_mtim.tv_sec > kAbandonedSeconds) {
      unlinkat(descriptor_, name.c_str(), 0);
      continue;
    }
    const int64_t blocks = BlockLedger::BlocksOf(info.st_size);
    total += blocks;
    if (!is_temporary) entries.push_back({info.st_mtim, blocks, name});
  }
  closedir(listing);
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) < std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
  });
  const int64_t most = max_bytes_ / BlockLedger::kBlockBytes;
  const int64_t goal = IsWithinBound(total + BlockLedger::BlocksOf(total)) ? most : most - most / 4;
  for (const Entry& entry : entries) {
    if (total + BlockLedger::BlocksOf(total) <= goal) break;
    if (unlinkat(descriptor_, entry.name.c_str(), 0) == 0) {
      ++evicted_;
    } else if (errno != ENOENT) {
      return CacheError(path_, "take an entry away");
    }
    total -= entry.blocks;
  }
  return recount.Finish(total);
}

Status CacheDirectory::Finish() {
  if (stored_ > 0 && problem().ok() && !IsWithinBound(ledger_.Blocks())) {
    Status status = HoldBound();
    const std::lock_guard<std::mutex> guard(lock_);
    if (problem_.ok()) problem_ = std::move(status);
  }
  return problem();
}

Status CacheDirectory::problem() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return problem_;
}

CacheFigures CacheDirectory::figures() const { return {hits_, misses_, damaged_, stored_, evicted_}; }

Result<std::string> DefaultCacheDirectory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/ingot";  // others are to be ignored
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/ingot";
  return Status(StatusCode::kNotFound, "neither XDG_CACHE_HOME nor HOME names a folder");
}

}  // namespace ingot::kernels
