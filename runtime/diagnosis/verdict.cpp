#include "runtime/diagnosis/verdict.h"

#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

std::string rank_name(const Verdict& v) {
  return "rank " + std::to_string(v.rank) + (v.host.empty() ? "" : " (" + v.host + ")");
}

std::string data_action(const RunFacts& facts) {
  if (facts.data_workers)
    return "raise data.workers from " + std::to_string(*facts.data_workers) +
           ", or move its data to a faster disk (data.cache_dir)";
  return "raise data.workers, or move its data to a faster disk (data.cache_dir)";
}

std::string core_action(const RunFacts& facts) {
  std::string text = "find what else runs on its cores (top -H)";
  if (facts.cores_per_rank && facts.threads_per_rank && *facts.threads_per_rank > *facts.cores_per_rank)
    return text + "; the rank itself has " + std::to_string(*facts.threads_per_rank) + " threads on " +
           std::to_string(*facts.cores_per_rank) + " cores: lower data.workers or start fewer ranks on the host";
  return text + " and move it, or bind the rank to others";
}

}  // namespace

const char* name(Cause cause) {
  switch (cause) {
    case Cause::kData:
      return "data_wait";
    case Cause::kCopy:
      return "copy";
    case Cause::kUnequalWork:
      return "unequal_work";
    case Cause::kCoreContention:
      return "core_contention";
    case Cause::kStopped:
      return "stopped";
    case Cause::kMemoryBandwidth:
      return "memory_bandwidth";
    case Cause::kSlowDevice:
      return "slow_device";
    case Cause::kHostGap:
      return "host_gap";
    case Cause::kCheckpoint:
      return "checkpoint";
    case Cause::kEval:
      return "eval";
    case Cause::kOther:
      break;
  }
  return "other";
}

const char* plain_words(Cause cause) {
  switch (cause) {
    case Cause::kData:
      return "reads its data";
    case Cause::kCopy:
      return "copies to its device";
    case Cause::kUnequalWork:
      return "has more to compute and needs";
    case Cause::kCoreContention:
      return "is ready to run but others have its core for";
    case Cause::kStopped:
      return "stands still, neither running nor ready, for";
    case Cause::kMemoryBandwidth:
      return "lacks memory bandwidth and computes";
    case Cause::kSlowDevice:
      return "computes the same work slower:";
    case Cause::kHostGap:
      return "is in host code between operators";
    case Cause::kCheckpoint:
      return "saves checkpoints";
    case Cause::kEval:
      return "evaluates";
    case Cause::kOther:
      break;
  }
  return "does other things";
}

const char* name(Pattern pattern) {
  switch (pattern) {
    case Pattern::kSteady:
      return "steady";
    case Pattern::kPeriodic:
      return "periodic";
    case Pattern::kOccasional:
      return "occasional";
    case Pattern::kChangingRank:
      break;
  }
  return "changing_rank";
}

std::string action_for(const Verdict& v, int tp, const RunFacts& facts) {
  if (v.rank < 0)
    return "look for what pauses processes in turn: garbage collection, memory compaction, cron, noisy neighbours "
           "(perf sched)";
  switch (v.cause) {
    case Cause::kData:
      return data_action(facts);
    case Cause::kCopy:
      return "check the link of its device (width and generation under load) and whether host memory is pinned";
    case Cause::kUnequalWork:
      return tp > 1
                 ? "turn on data.packing, so that data ranks get equal tokens; between tp peers choose a parallel.tp "
                   "that divides the heads"
                 : "turn on data.packing (or sort by length inside batch.global), so that ranks get equal tokens";
    case Cause::kCoreContention:
      return core_action(facts);
    case Cause::kStopped:
      return "find who stops it: job control or a debugger (state T), swapping (major faults), a frozen container or "
             "VM";
    case Cause::kMemoryBandwidth:
      return "find the process that floods the memory of its socket and move it to another, or start ranks with "
             "--map-by numa";
    case Cause::kSlowDevice:
      return "check clock, temperature and throttling of its device; leave the host or device out of the hostfile if "
             "it "
             "stays slow";
    case Cause::kHostGap:
      return "profile its host thread (py-spy, perf): reads of device values, allocations, logging or other work "
             "between operators";
    case Cause::kCheckpoint:
      return "raise checkpoint.every, or write to a faster disk (run.dir)";
    case Cause::kEval:
      return "raise eval.every or lower eval.batches";
    case Cause::kOther:
      break;
  }
  return "drivetrain trace shows the spans of its slowest step";
}

std::string first_line(const Diagnosis& d) {
  if (d.too_short) return "too few steps to judge: " + std::to_string(d.steps) + " with rows of every rank";
  if (d.verdicts.empty())
    return "no straggler in " + std::to_string(d.steps) + " steps of " + in_ms(d.step_ms) + "; a rank later by " +
           in_ms(d.detectable_ms) + " (" + in_percent(d.detectable_ms / d.step_ms) + ") per step would have shown";
  const Verdict& v = d.verdicts.front();
  std::string text;
  if (d.victim.rank >= 0 && (v.rank < 0 || d.victim.waits_for == v.rank)) {
    // Spinning waits count as busy; sleeping ones do not.
    const bool spins = d.victim.busy + d.victim.waiting > 1.05;
    text = "rank " + std::to_string(d.victim.rank) +
           (spins ? " is busy " + in_percent(d.victim.busy) + " of the step but " + in_percent(d.victim.waiting) +
                        " of that is spinning in "
                  : " waits " + in_percent(d.victim.waiting) + " of the step in ") +
           d.victim.collective + (v.rank < 0 ? "" : (spins ? ", waiting for " : " for ") + rank_name(v)) + "; ";
  }
  if (v.rank < 0) {
    text += "pauses of " + in_ms(v.late_ms) + " hop from rank to rank and cost " + in_ms(v.cost_ms) + " per step";
  } else {
    text += rank_name(v) + " " + plain_words(v.cause) + " " + in_ms(v.own_ms) +
            (v.pattern == Pattern::kSteady     ? " per step"
             : v.pattern == Pattern::kPeriodic ? " every " + std::to_string(v.period) + " steps"
                                               : " in some steps") +
            " (others " + in_ms(v.peers_ms) + ")";
  }
  return text + ": " + v.action;
}

}  // namespace drivetrain
