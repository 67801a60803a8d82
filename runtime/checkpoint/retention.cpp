#include "runtime/checkpoint/retention.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "kernels/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/file_io.h"
#include "runtime/checkpoint/manifest.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::int64_t step;
  fs::path path;
};

// Folders named like checkpoints, complete or not, highest step first.
std::vector<Found> list_checkpoints(const fs::path& folder) {
  std::vector<Found> out;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error && error != std::errc::no_such_file_or_directory) throw_io("list", folder, error.value());
  for (const auto& entry : entries) {
    const std::int64_t step = checkpoint_step(entry.path().filename().string());
    if (step >= 0 && entry.is_directory(error)) out.push_back({step, entry.path()});
  }
  std::sort(out.begin(), out.end(), [](const Found& a, const Found& b) { return a.step > b.step; });
  return out;
}

// Out of sight before its files go, so that nobody takes a half-removed one for a checkpoint.
void remove_checkpoint(const fs::path& path) {
  const fs::path hidden = path.parent_path() / (std::string(kTemporaryPrefix) + "old-" + path.filename().string());
  fs::remove_all(hidden);
  fs::rename(path, hidden);
  fs::remove_all(hidden);
}

std::optional<std::string> read_latest(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / kLatestFile, error)) return std::nullopt;
  std::string name = read_text_file(folder / kLatestFile, 4096);
  while (!name.empty() && (name.back() == '\n' || name.back() == '\r' || name.back() == ' ')) name.pop_back();
  return checkpoint_step(name) >= 0 ? std::optional(name) : std::nullopt;
}

}  // namespace

void remove_temporaries(const fs::path& folder) {
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kTemporaryPrefix)) stale.push_back(entry.path());
  for (const fs::path& path : stale) fs::remove_all(path);
}

void replace_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::exists(to, error)) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      sync_folder(to.parent_path());
      fs::remove_all(from);
      return;
    }
    if (errno != EINVAL && errno != ENOSYS) throw_io("replace", to, errno);
    remove_checkpoint(to);
  }
  if (::rename(from.c_str(), to.c_str()) != 0) throw_io("rename " + from.string() + " to", to, errno);
  sync_folder(to.parent_path());
}

void prune_checkpoints(const fs::path& folder, const std::string& latest, std::int64_t keep) {
  if (keep <= 0) return;
  std::int64_t others = 0;
  for (const Found& found : list_checkpoints(folder)) {
    if (found.path.filename() == latest || !is_complete_checkpoint(found.path)) continue;
    if (++others >= keep) remove_checkpoint(found.path);
  }
}

std::optional<fs::path> CheckpointFolder::newest() const {
  const std::optional<std::string> latest = read_latest(folder_);
  if (latest && is_complete_checkpoint(folder_ / *latest)) return folder_ / *latest;
  for (const Found& found : list_checkpoints(folder_))
    if (is_complete_checkpoint(found.path)) return found.path;
  return std::nullopt;
}

}  // namespace drivetrain
