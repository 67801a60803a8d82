// Which checkpoints of a folder stay and which one counts: names, replacing, pruning. Knows no tensors and no ranks.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace drivetrain {

inline constexpr const char* kTemporaryPrefix = ".tmp-";
inline constexpr const char* kLatestFile = "latest";

// Removes what interrupted saves left.
void remove_temporaries(const std::filesystem::path& folder);
// Makes `from` the folder `to`, durably. An older `to` is exchanged in one step where the file system can, and removed.
void replace_folder(const std::filesystem::path& from, const std::filesystem::path& to);
// Removes checkpoints until `keep` complete ones are left: the one named `latest` and the highest steps. 0 keeps all.
// Incomplete ones, which a save never leaves, are not counted and not touched: they are for people to look at.
void prune_checkpoints(const std::filesystem::path& folder, const std::string& latest, std::int64_t keep);

}  // namespace drivetrain
