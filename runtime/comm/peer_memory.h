// Reads ordinary memory of another process on this host, where the kernel permits it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace drivetrain {

// Copies [from, from + bytes) of the process to `to`. False when the kernel refuses (another user, a sandbox, no such
// process or address); `to` may then be partly written.
bool read_process(int pid, std::uint64_t from, std::byte* to, std::size_t bytes);

}  // namespace drivetrain
