#include "tests/runtime/comm/forked_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "runtime/comm/host_bootstrap.h"

namespace drivetrain::test {
namespace {

// What a child tells the parent, in memory shared by both.
struct Report {
  bool passed;
  int kind;
  double seconds;
  char error[2048];
};

void run_child(const HostTickets& tickets, int ranks, int self, const HostOptions& options,
               const std::function<void(Communicator& world)>& body, Report& report) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  try {
    const auto world = join_host(tickets, make_shm_blocks(), members, self, options, nullptr);
    body(*world);
    report.passed = !testing::Test::HasFailure();
  } catch (const Error& error) {
    report.kind = static_cast<int>(error.kind());
    std::string(error.what()).copy(report.error, sizeof report.error - 1);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<ForkedRank> run_forked_ranks(int ranks, const HostOptions& options,
                                         const std::function<void(Communicator& world)>& body) {
  const auto count = static_cast<std::size_t>(ranks);
  void* memory = mmap(nullptr, count * sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorKind::kMemory, "no memory for the reports of the ranks");
  auto* reports = static_cast<Report*>(memory);
  const auto blocks = make_shm_blocks();
  PreparedHost prepared = prepare_host(*blocks, ranks);
  std::vector<pid_t> pids(count);
  for (int r = 0; r < ranks; ++r) {
    const pid_t pid = fork();
    if (pid == 0) {
      run_child(prepared.tickets, ranks, r, options, body, reports[r]);
      _exit(0);
    }
    pids[static_cast<std::size_t>(r)] = pid;
  }
  std::vector<ForkedRank> results(count);
  std::size_t left = count;
  std::vector<bool> ended(count), stopped(count);
  while (left > 0) {
    std::size_t moving = 0;
    for (std::size_t r = 0; r < count; ++r) moving += !ended[r] && !stopped[r];
    if (moving == 0)
      for (std::size_t r = 0; r < count; ++r)
        if (stopped[r] && !ended[r]) kill(pids[r], SIGKILL);
    int status = 0;
    const pid_t pid = waitpid(-1, &status, moving == 0 ? 0 : WUNTRACED);
    const auto r = static_cast<std::size_t>(std::find(pids.begin(), pids.end(), pid) - pids.begin());
    if (r == count) break;
    if (WIFSTOPPED(status)) {
      stopped[r] = true;
      continue;
    }
    ended[r] = true;
    --left;
    results[r] = {WIFSIGNALED(status), reports[r].passed, reports[r].error, static_cast<ErrorKind>(reports[r].kind),
                  reports[r].seconds};
  }
  blocks->seal(prepared.tickets.world);
  blocks->seal(prepared.tickets.group);
  munmap(memory, count * sizeof(Report));
  return results;
}

}  // namespace drivetrain::test
