// `drivetrain rank-exec -- PROGRAM ARGS`: what mpirun starts for every rank. Gives the rank its share of the host and its
// files, then becomes PROGRAM; no process of ours stays between.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "launcher/commands.h"
#include "launcher/cpu_share.h"
#include "launcher/process.h"
#include "launcher/rank_files.h"
#include "runtime/comm/world.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

void set_variable(const char* name, const std::string& value) {
  if (setenv(name, value.c_str(), 1) != 0) {
    throw Error(ErrorKind::kLaunch, std::string("cannot set ") + name + ": " + std::strerror(errno));
  }
}

// Threads and processors: the rank's share of this host, unless the user has chosen a number of threads.
void take_share(const ProcessPlace& place) {
  const CpuShare share = share_of(allowed_cpus(), place.local_rank, place.local_size);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : share.cpus) CPU_SET(cpu, &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) {
    log_warn(std::string("cannot pin this rank to its processors: ") + std::strerror(errno));
  }
  if (std::getenv("OMP_NUM_THREADS") == nullptr) set_variable("OMP_NUM_THREADS", std::to_string(share.threads));
}

void redirect(int target, const std::filesystem::path& file) {
  const FileDescriptor opened(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (opened.get() < 0 || dup2(opened.get(), target) < 0) {
    throw Error(ErrorKind::kLaunch, "cannot write " + file.string() + ": " + std::strerror(errno));
  }
}

// Rank 0 keeps the console, which the launcher copies to its files.
void open_files(const ProcessPlace& place) {
  const char* folder = std::getenv(kRankFolderVariable);
  if (folder == nullptr || *folder == '\0' || place.world_rank == 0) return;
  std::error_code error;  // the folder is already there unless this host does not share it
  std::filesystem::create_directories(folder, error);
  redirect(STDOUT_FILENO, rank_file(folder, place.world_rank, "out"));
  redirect(STDERR_FILENO, rank_file(folder, place.world_rank, "err"));
}

}  // namespace

int cmd_rank_exec(Arguments arguments) {
  if (arguments.size() < 2 || arguments[0] != "--") {
    throw Error(ErrorKind::kUsage, "rank-exec wants '-- PROGRAM ARGS'; 'drivetrain launch' uses it");
  }
  const ProcessPlace place = process_place();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGUSR1, SIG_DFL);  // mpirun was started with it ignored, and a shell cannot trap what it inherits ignored
  set_variable("LOCAL_RANK", std::to_string(place.local_rank));
  take_share(place);
  open_files(place);
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw Error(ErrorKind::kLaunch, "cannot run " + words[0] + ": " + std::strerror(errno));
}

}  // namespace drivetrain
