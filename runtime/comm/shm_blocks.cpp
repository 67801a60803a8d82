#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "kernels/error.h"
#include "runtime/comm/process_info.h"
#include "runtime/comm/shared_block.h"

namespace drivetrain {
namespace {

constexpr char kFolder[] = "/dev/shm";
constexpr char kPrefix[] = "drivetrain.";

std::string system_message(int code) {
  return std::error_code(code, std::generic_category()).message();
}

// Process numbers only mean something inside their namespace, so a name carries it.
std::uint64_t pid_namespace() {
  struct stat info {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

struct Mapping {
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data) munmap(data, bytes);
    if (fd >= 0) close(fd);
  }
  int fd = -1;
  void* data = nullptr;
  std::size_t bytes = 0;
};

SharedBlock map(std::shared_ptr<Mapping> mapping, std::size_t bytes, const std::string& name) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mapping->fd, 0);
  if (p == MAP_FAILED)
    throw Error(ErrorKind::kMemory, "cannot map " + std::to_string(bytes) + " bytes of shared memory " + name + ": " +
                                        system_message(errno));
  mapping->data = p;
  mapping->bytes = bytes;
  madvise(p, bytes, MADV_HUGEPAGE);  // a wish: most systems keep shared memory in small pages
  auto* data = static_cast<std::byte*>(p);
  return {std::move(mapping), data, bytes};
}

class ShmBlocks final : public BlockFactory {
 public:
  std::string transport() const override { return "shm"; }

  SharedBlock create(std::size_t bytes, BlockTicket& ticket) override {
    auto mapping = std::make_shared<Mapping>();
    std::string name;
    do {
      name = next_name();
      mapping->fd = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    } while (mapping->fd < 0 && errno == EEXIST);  // another factory of this process
    if (name.size() >= ticket.bytes.size()) throw Error(ErrorKind::kLogic, "shared memory name too long: " + name);
    if (mapping->fd < 0)
      throw Error(ErrorKind::kPreflight, "cannot create shared memory " + name + " in " + kFolder + ": " +
                                             system_message(errno) +
                                             "; mount a tmpfs there or set comm.transport: mpi");
    ticket.bytes.fill('\0');
    std::copy(name.begin(), name.end(), ticket.bytes.begin());
    try {
      if (ftruncate(mapping->fd, static_cast<off_t>(bytes)) != 0)
        throw Error(ErrorKind::kPreflight, "cannot size shared memory " + name + " to " + std::to_string(bytes) +
                                               " bytes: " + system_message(errno));
      return map(std::move(mapping), bytes, name);
    } catch (const Error&) {
      seal(ticket);
      throw;
    }
  }

  SharedBlock open(const BlockTicket& ticket, std::size_t bytes) override {
    const std::string name = ticket.bytes.data();
    auto mapping = std::make_shared<Mapping>();
    mapping->fd = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600);
    if (mapping->fd < 0)
      throw Error(ErrorKind::kComm, "cannot open shared memory " + name +
                                        " of a peer on this host: " + system_message(errno) +
                                        "; ranks in separate containers need a common /dev/shm (--ipc=host) or "
                                        "comm.transport: mpi");
    return map(std::move(mapping), bytes, name);
  }

  void commit(const SharedBlock& block, std::size_t begin, std::size_t bytes) override {
    const int fd = static_cast<const Mapping*>(block.owner.get())->fd;
    int code = EINTR;
    while (code == EINTR) code = posix_fallocate(fd, static_cast<off_t>(begin), static_cast<off_t>(bytes));
    if (code == 0) return;
    struct statvfs info {};
    const bool known = statvfs(kFolder, &info) == 0;
    const std::string free_bytes =
        known ? std::to_string(static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize) : "an unknown number";
    throw Error(ErrorKind::kPreflight,
                std::string(kFolder) + " is too small: " + std::to_string(bytes) + " bytes of a block of " +
                    std::to_string(block.bytes) + " bytes are needed, " + free_bytes + " are free (" +
                    system_message(code) +
                    "); enlarge it (docker: --shm-size, else mount -o remount,size=...) or set "
                    "comm.transport: mpi");
  }

  void seal(const BlockTicket& ticket) noexcept override { shm_unlink(ticket.bytes.data()); }

 private:
  std::string next_name() {
    const int pid = getpid();
    std::ostringstream name;
    name << '/' << kPrefix << pid_namespace() << '.' << pid << '.' << process_start_time(pid) << '.' << next_++;
    return name.str();
  }
  std::atomic<std::uint64_t> next_{1};
};

// "drivetrain.<pid namespace>.<pid>.<start time>.<number>" of a process that is no more.
bool is_leftover(const std::string& file) {
  if (!file.starts_with(kPrefix)) return false;
  std::istringstream text(file.substr(std::strlen(kPrefix)));
  std::uint64_t space = 0, start_time = 0;
  int pid = 0;
  char dot1 = 0, dot2 = 0;
  if (!(text >> space >> dot1 >> pid >> dot2 >> start_time) || space != pid_namespace()) return false;
  return process_state(pid, start_time) == ProcessState::kGone;
}

}  // namespace

std::shared_ptr<BlockFactory> make_shm_blocks() {
  return std::make_shared<ShmBlocks>();
}

void remove_shm_leftovers() noexcept {
  try {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
      const std::string file = entry.path().filename();
      if (is_leftover(file)) shm_unlink(("/" + file).c_str());
    }
  } catch (const std::exception&) {
    // Tidying is a courtesy; a folder that changes under our feet is somebody else tidying.
  }
}

}  // namespace drivetrain
