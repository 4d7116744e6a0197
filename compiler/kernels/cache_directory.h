// CacheDirectory: a folder of results by their keys, which later processes find again. It is the user's alone (0700,
// its owner checked when it is opened and never looked up by its path again), bounded in size, and may be used by
// several threads and processes at once. Nothing that it holds is trusted: an entry carries its whole key and a hash,
// and what is damaged, of another key or not the user's own file is no entry, and is replaced by the next one stored.
// Entries are written beside their place and renamed, so that a reader sees all of one or nothing. A store costs the
// same however many entries there are: what they take is in a ledger (block_ledger.h), and they are counted only when
// the bound is met.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernels/block_ledger.h"
#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::kernels {

struct CacheFigures {
  int64_t hits = 0, misses = 0;
  int64_t damaged = 0;  // of the misses: there was an entry, which could not be used
  int64_t stored = 0, evicted = 0;
};

class CacheDirectory {
 public:
  static constexpr int64_t kDefaultMaxBytes = int64_t{512} << 20;

  // Makes the folder, and those above it that are missing, for the user alone. Fails if it is not private to the user
  // of this process.
  static Result<std::unique_ptr<CacheDirectory>> Open(const std::string& path, int64_t max_bytes = kDefaultMaxBytes,
                                                      formats::FileCalls& calls = formats::FileCalls::System());
  ~CacheDirectory();
  CacheDirectory(const CacheDirectory&) = delete;
  CacheDirectory& operator=(const CacheDirectory&) = delete;

  // The contents that were stored under the key. Finding an entry makes it the last to be evicted.
  std::optional<std::vector<std::byte>> Find(std::string_view key);
  // Stores contents, in the place of what was there. Where the folder becomes larger than its bound, the entries go
  // that were unused for longest. After a failure nothing more is stored; problem() has its reason.
  void Store(std::string_view key, std::span<const std::byte> contents);

  // After the last Store: holds the bound over what processes with larger bounds stored, too. Returns problem().
  Status Finish();
  // The first failure to store, or success.
  Status problem() const;
  CacheFigures figures() const;
  const std::string& path() const { return path_; }

  // The name of the key's file in the folder.
  static std::string EntryName(std::string_view key);

 private:
  CacheDirectory(std::string path, int descriptor, int64_t max_bytes, formats::FileCalls& calls)
      : path_(std::move(path)),
        descriptor_(descriptor),
        max_bytes_(max_bytes),
        calls_(calls),
        ledger_(descriptor, path_, calls) {}
  std::optional<std::vector<std::byte>> Read(const std::string& name, std::string_view key, bool& exists);
  Status StoreEntry(const std::string& name, std::span<const std::byte> entry);
  Status Write(const std::string& name, std::span<const std::byte> entry);
  bool IsWithinBound(std::optional<int64_t> blocks) const;
  Status HoldBound();
  Status Trim();

  const std::string path_;
  const int descriptor_;
  const int64_t max_bytes_;
  formats::FileCalls& calls_;
  std::atomic<int64_t> hits_{0}, misses_{0}, damaged_{0}, stored_{0}, evicted_{0};
  std::atomic<uint64_t> temporaries_{0};
  mutable std::mutex lock_;  // over what follows
  BlockLedger ledger_;
  Status problem_;
};

// $XDG_CACHE_HOME/ingot, or ~/.cache/ingot. Fails where neither variable names an absolute path.
Result<std::string> DefaultCacheDirectory();

}  // namespace ingot::kernels
