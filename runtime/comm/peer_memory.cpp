#include "runtime/comm/peer_memory.h"

#include <sys/uio.h>

#include <algorithm>

namespace drivetrain {

bool read_process(int pid, std::uint64_t from, std::byte* to, std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // the kernel stops at 2 GiB
  while (bytes > 0) {
    const iovec here{to, std::min(bytes, kMost)};
    const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(from)), here.iov_len};
    const ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (n <= 0) return false;
    from += static_cast<std::uint64_t>(n);
    to += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace drivetrain
