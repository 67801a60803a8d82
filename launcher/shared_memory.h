// /dev/shm of this machine before a start: whether it is large enough, and what killed jobs left there.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

namespace drivetrain {

inline constexpr const char* kSharedMemory = "/dev/shm";

// What Open MPI's transport inside a host (vader) takes per rank before any message: a segment of 4 MiB and a page.
// With less it ends with "not enough space for /dev/shm/vader_segment...".
inline constexpr std::size_t kOpenMpiBytesPerRank = (std::size_t{4} << 20) + 4096;

// Throws kPreflight naming the bytes needed and free when `folder` cannot hold bytes_per_rank for each of `ranks`.
void check_shared_memory(const std::filesystem::path& folder, int ranks, std::size_t bytes_per_rank);

// Removes Open MPI's vader_segment.<host>.<user>.<job>.<rank> files of this host and user that no process has mapped and
// that are older than a minute. Does nothing where it cannot see all processes that might use them. Returns how many.
int remove_open_mpi_leftovers(const std::filesystem::path& folder) noexcept;

}  // namespace drivetrain
