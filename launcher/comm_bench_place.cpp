#include "launcher/comm_bench_place.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "kernels/error.h"
#include "launcher/machine_facts.h"
#include "launcher/memory_plan.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

// What each rank tells the others.
struct Card {
  std::array<char, 80> host{};
  std::array<char, 16> interface {};
  std::int32_t first_on_host = 0;
};

template <std::size_t N>
void put(std::array<char, N>& field, const std::string& text) {
  text.copy(field.data(), N - 1);
}

std::string reason_for(const BenchRequest& request, const std::string& transport, const BenchPlace& place) {
  if (request.transport != BenchTransport::kAuto) return "asked for";
  if (transport == "shm") return "auto: all ranks share one host";
  if (transport == "hierarchical") return "auto: hosts with equally many ranks each";
  return place.hosts == 1 ? "auto" : "auto: hosts with unequal numbers of ranks";
}

std::size_t free_shared_memory() {
  struct statvfs info {};
  return statvfs("/dev/shm", &info) == 0 ? static_cast<std::size_t>(info.f_bavail) * info.f_frsize : 0;
}

// The interface that was told by name or network, else the only one beside loopback; "" when that is not clear.
std::string interface_between_hosts(const std::string& told) {
  std::string only;
  int others = 0;
  for (const NetworkInterface& one : network_interfaces()) {
    if (one.name == told || one.cidr == told) return one.name;
    if (one.name == "lo") continue;
    only = one.name;
    ++others;
  }
  return told.empty() && others == 1 ? only : "";
}

}  // namespace

BenchPlace gather_place(Communicator& world, const std::vector<int>& host_ranks, const BenchRequest& request) {
  Card mine;
  put(mine.host, short_host_name());
  put(mine.interface, interface_between_hosts(request.interface));
  mine.first_on_host = host_ranks.front();
  const auto bytes = static_cast<std::int64_t>(sizeof(Card));
  std::vector<Card> cards(static_cast<std::size_t>(world.size()));
  world.all_gather(Tensor(cards.data(), DType::kU8, {bytes * world.size()}), Tensor(&mine, DType::kU8, {bytes}))
      .wait();

  BenchPlace place;
  std::map<int, int> index_of;  // by first rank
  for (const Card& card : cards) {
    const auto known = index_of.try_emplace(card.first_on_host, static_cast<int>(index_of.size())).first;
    const std::string block = request.ranks_per_host > 0 ? "/" + std::to_string(known->second) : "";
    const std::string network = request.ranks_per_host > 0 ? "" : card.interface.data();
    place.sites.push_back({card.host.data() + block, known->second, network});
  }
  place.hosts = static_cast<int>(index_of.size());
  place.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  place.transport = world.transport();
  place.reason = reason_for(request, place.transport, place);
  return place;
}

void check_room(const BenchRequest& request, const std::vector<BenchCase>& cases, int ranks, int ranks_on_host) {
  constexpr std::size_t kSlack = std::size_t{64} << 20;  // staging, control blocks, MPI's own
  const bool shared = request.memory == BenchMemory::kSymmetric && request.transport != BenchTransport::kThreads &&
                      request.transport != BenchTransport::kMpi;
  const std::size_t memory = host_memory(0).available_bytes, shm = shared ? free_shared_memory() : memory;
  const std::size_t room = std::min(memory, shm);
  const std::size_t buffers = memory_of(cases, ranks) * static_cast<std::size_t>(ranks_on_host);
  if (room == 0 || buffers + kSlack <= room) return;
  std::size_t largest = 0;
  for (const BenchCase& one : cases) largest = std::max(largest, one.bytes());
  const double share = static_cast<double>(room - std::min(room, kSlack)) / static_cast<double>(buffers);
  const std::size_t megabytes = static_cast<std::size_t>(share * static_cast<double>(largest)) >> 20;
  const bool shm_is_short = shared && shm < memory;
  throw Error(ErrorKind::kPreflight,
              std::string(shm_is_short ? "/dev/shm" : "the memory of this host") + " has " +
                  std::to_string(room >> 20) + " MB free, but the buffers of " + std::to_string(ranks_on_host) +
                  " ranks need " + std::to_string((buffers + kSlack) >> 20) + " MB for sizes up to " +
                  std::to_string(largest) + " bytes; " +
                  (megabytes == 0 ? "not even --end 1M fits" : "--end " + std::to_string(megabytes) + "M fits") +
                  (shm_is_short ? ", or use --memory ordinary or a larger /dev/shm" : ""));
}

}  // namespace drivetrain
