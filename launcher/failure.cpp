#include "launcher/failure.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>

#include "kernels/error.h"
#include "launcher/rank_files.h"
#include "runtime/comm/world.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

RankFailure describe_current_exception() {
  RankFailure failure;
  try {
    throw;
  } catch (const Error& error) {
    failure.kind = name(error.kind());
    failure.message = error.what();
    failure.exit_code = error.exit_code();
  } catch (const std::bad_alloc&) {
    failure.kind = name(ErrorKind::kMemory);
    failure.message = "out of memory; see 'drivetrain plan' for what the run needs";
    failure.exit_code = exit_code(ErrorKind::kMemory);
  } catch (const std::exception& error) {
    failure.kind = name(ErrorKind::kLogic);
    failure.message = error.what();
    failure.exit_code = exit_code(ErrorKind::kLogic);
  } catch (...) {
    failure.kind = name(ErrorKind::kLogic);
    failure.message = "an exception without a message";
    failure.exit_code = exit_code(ErrorKind::kLogic);
  }
  return failure;
}

}  // namespace

int report_current_exception(const std::string& phase) {
  RankFailure failure = describe_current_exception();
  if (failure.exit_code == exit_code(ErrorKind::kStopped)) {
    log_info(failure.message);
    return failure.exit_code;
  }
  const ProcessPlace place = process_place();
  failure.world_rank = place.world_rank;
  failure.host = short_host_name();
  failure.phase = phase;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  failure.time_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  log_critical((phase == failure.kind ? "" : phase + ": ") + failure.kind + ": " + failure.message);
  const char* folder = std::getenv(kRankFolderVariable);
  if (folder != nullptr && *folder != '\0') write_rank_failure(folder, failure);
  return failure.exit_code;
}

void leave_failed(int code) {
  // Who only lost a peer leaves the word to it, so that mpirun reports the death that came first; it ends us meanwhile.
  if (code == exit_code(ErrorKind::kComm)) std::this_thread::sleep_for(std::chrono::seconds(3));
  abort_world(code);
}

int run_rank(Communicator& world, const RankPhase& phase, const std::function<int()>& body) {
  try {
    return body();
  } catch (...) {
    const int code = report_current_exception(phase.name);
    // A stop was agreed by all ranks and is no failure: nobody needs waking.
    if (code != exit_code(ErrorKind::kStopped))
      world.abort("rank " + std::to_string(world.rank()) + " on " + short_host_name() + " failed in " + phase.name);
    leave_failed(code);
  }
}

}  // namespace drivetrain
