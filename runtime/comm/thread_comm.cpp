#include "runtime/comm/thread_comm.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/comm/host_comm.h"
#include "runtime/comm/host_threads.h"

namespace drivetrain {
namespace {

// The first exception of any rank, for the caller; its text goes to the waiting peers.
class FirstError {
 public:
  void take(HostWorld& world) noexcept {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = std::current_exception();
    const std::string who = "rank " + std::to_string(world.self()) + " failed: ";
    try {
      std::rethrow_exception(error_);
    } catch (const std::exception& e) {
      world.fail(ErrorKind::kComm, who + e.what());
    } catch (...) {
      world.fail(ErrorKind::kComm, who + "an exception of unknown type");
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void run_host_threads(int ranks, const HostOptions& options, const std::function<void(Communicator& world)>& body) {
  if (ranks < 1) throw Error(ErrorKind::kLogic, "a world needs at least one rank, not " + std::to_string(ranks));
  const auto blocks = make_heap_blocks();
  BlockTicket ticket;
  const SharedBlock world_block = blocks->create(world_block_bytes(ranks), ticket);
  const SharedBlock group_block = blocks->create(group_block_bytes(ranks), ticket);
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  std::vector<std::shared_ptr<HostWorld>> worlds;
  for (int r = 0; r < ranks; ++r)
    worlds.push_back(std::make_shared<HostWorld>(blocks, world_block, members, r, options, nullptr));

  FirstError first;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto& world = worlds[static_cast<std::size_t>(r)];
      try {
        HostCommunicator communicator(std::make_unique<HostGroup>(world, group_block, 0, members, r));
        body(communicator);
      } catch (...) {
        first.take(*world);
      }
      world->leave();
    });
  }
  for (auto& thread : threads) thread.join();
  first.rethrow();
}

void run_thread_ranks(int ranks, const std::function<void(Communicator& world)>& body) {
  HostOptions options;
  options.reach = HostOptions::Reach::kEverywhere;
  run_host_threads(ranks, options, body);
}

}  // namespace drivetrain
