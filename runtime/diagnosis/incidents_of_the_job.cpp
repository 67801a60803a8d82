#include <algorithm>
#include <array>

#include "runtime/diagnosis/incident_tables.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

using Facts = const IncidentFacts&;
using Match = std::optional<std::string>;

// Twice the mean is beyond what random documents of one data set give over a batch.
constexpr double kManyDocuments = 2;
// A checkpoint that takes half of the limit will one day take all of it.
constexpr double kNearTimeout = 0.5;
// Overlapped reductions expose their last bucket; with four or more, under a third.
constexpr double kNoOverlap = 0.9;
// More of the step than computing needs in any layout worth running.
constexpr double kCommBound = 0.4;

std::string rank(int r) {
  return "rank " + std::to_string(r);
}

template <class Condition>
const Verdict* verdict_where(Facts f, Condition&& condition) {
  const auto found = std::find_if(f.verdicts.begin(), f.verdicts.end(), condition);
  return found == f.verdicts.end() ? nullptr : &*found;
}
const Verdict* verdict_of(Facts f, Cause cause) {
  return verdict_where(f, [&](const Verdict& v) { return v.rank >= 0 && v.cause == cause; });
}
template <class Condition>
const RankFacts* rank_where(Facts f, Condition&& condition) {
  const auto found = std::find_if(f.ranks.begin(), f.ranks.end(), condition);
  return found == f.ranks.end() ? nullptr : &*found;
}

// All ranks know their call, and it is the same one.
bool same_call(Facts f) {
  return std::all_of(f.ranks.begin(), f.ranks.end(), [&](const RankFacts& r) {
    return r.call_number && r.call_number == f.ranks[0].call_number && r.call == f.ranks[0].call;
  });
}

const std::array kRules{
    IncidentRule{1, "open-mmlab/mmpretrain#350",
                 [](Facts f) -> Match {
                   const Verdict* v = verdict_of(f, Cause::kData);
                   if (!v || v->pattern != Pattern::kSteady) return {};
                   return "the loader of " + rank(v->rank) + " cannot feed it: " + in_ms(v->own_ms) +
                          " per step, peers " + in_ms(v->peers_ms);
                 },
                 "raise data.workers; bench --no-compute shows what the loader alone gives"},
    IncidentRule{2, "Lightning#2701, pytorch#36285",
                 [](Facts f) -> Match {
                   const Verdict* v = verdict_where(f, [](const Verdict& x) {
                     return x.rank == 0 && (x.cause == Cause::kHostGap || x.cause == Cause::kOther);
                   });
                   if (!v) return {};
                   return "rank 0 does " + in_ms(v->late_ms) +
                          " of host work per step that the others do not; their 100 % is waiting";
                 },
                 "move logging, saving and metrics of rank 0 off the step, or do them less often (telemetry.every)"},
    IncidentRule{3, "espnet/espnet#2443",
                 [](Facts f) -> Match {
                   const Verdict* v = verdict_of(f, Cause::kUnequalWork);
                   if (!v) return {};
                   return rank(v->rank) + " has longer sequences than its peers, who wait " + in_ms(v->cost_ms) +
                          " per step for it";
                 },
                 "data.packing: on gives every rank equal tokens"},
    IncidentRule{4, "facebookresearch/ParlAI#2909",
                 [](Facts f) -> Match {
                   const Verdict* v = verdict_of(f, Cause::kData);
                   if (!v) return {};
                   const RankFacts* r = rank_where(f, [&](const RankFacts& x) {
                     return x.rank == v->rank && x.documents_over_mean.value_or(0) >= kManyDocuments;
                   });
                   if (!r) return {};
                   return rank(v->rank) + " prepares " + fixed(*r->documents_over_mean, 1) +
                          " x the documents of the mean rank: many short ones cost loader time, not tokens";
                 },
                 "tokenise ahead (data.cache_dir), or data.format: tokens"},
    IncidentRule{5, "CosyVoice#297, snowfall#152, pytorch#33148",
                 [](Facts f) -> Match {
                   if (f.moving) return {};
                   const RankFacts* r = rank_where(f, [](const RankFacts& x) { return x.out_of_data; });
                   if (!r) return {};
                   return rank(r->rank) + " ran out of data and left; the others wait for it in a collective";
                 },
                 "give every rank the same number of batches (drop or repeat the rest of the epoch)"},
    IncidentRule{6, "NVIDIA/nccl#296",
                 [](Facts f) -> Match {
                   if (f.moving) return {};
                   for (std::size_t i = 1; i < f.ranks.size(); ++i) {
                     const RankFacts &a = f.ranks[0], &b = f.ranks[i];
                     if (a.call_number && a.call_number == b.call_number && a.call != b.call)
                       return "in call " + std::to_string(*a.call_number) + " " + rank(a.rank) + " does " + a.call +
                              ", " + rank(b.rank) + " does " + b.call;
                   }
                   return {};
                 },
                 "find the branch that ranks take differently; the first difference is the cause, later ones follow"},
    IncidentRule{7, "fairscale#179, pytorch#136009, pytorch#90057",
                 [](Facts f) -> Match {
                   const RankFacts* first =
                       rank_where(f, [](const RankFacts& x) { return x.loss_scale.has_value(); });
                   const RankFacts* other = rank_where(
                       f, [&](const RankFacts& x) { return x.loss_scale && *x.loss_scale != *first->loss_scale; });
                   if (!first || !other) return {};
                   return "loss scales differ: " + rank(first->rank) + " has " + fixed(*first->loss_scale, 0) + ", " +
                          rank(other->rank) + " has " + fixed(*other->loss_scale, 0) + "; the replicas diverge";
                 },
                 "stop and resume from the last checkpoint; report it, found_inf must be agreed on by all ranks"},
    IncidentRule{24, "torchtitan#148, torchtitan#696, DeepSpeed#8451",
                 [](Facts f) -> Match {
                   const Verdict* v =
                       verdict_where(f, [](const Verdict& x) { return x.pattern == Pattern::kChangingRank; });
                   if (!v) return {};
                   return "pauses of " + in_ms(v->late_ms) + " hop from rank to rank, as garbage collection does";
                 },
                 "collect garbage on all ranks in the same step; look at memory compaction and cron"},
    IncidentRule{25, "lightning-thunder#420, pytorch#65078",
                 [](Facts f) -> Match {
                   const RankFacts* r = rank_where(
                       f, [](const RankFacts& x) { return x.device_allocations_per_step.value_or(0) >= 1; });
                   if (!r) return {};
                   return rank(r->rank) + " allocates device memory " + fixed(*r->device_allocations_per_step, 0) +
                          " times per step in steady state; each stops the device";
                 },
                 "sizes that change from step to step: turn on data.packing, so that shapes stay"},
    IncidentRule{26, "torchtune#522, fairchem#2195",
                 [](Facts f) -> Match {
                   // One read a step is the runtime's own (loss and norm).
                   const RankFacts* r =
                       rank_where(f, [](const RankFacts& x) { return x.device_reads_per_step.value_or(0) > 1; });
                   if (!r) return {};
                   return rank(r->rank) + " reads device values " + fixed(*r->device_reads_per_step, 0) +
                          " times per step; the device idles each time";
                 },
                 "keep values on the device and read them every telemetry.every steps"},
    IncidentRule{27, "torchtune#2093, accelerate#2912, ace#851",
                 [](Facts f) -> Match {
                   if (!f.checkpoint_s || !f.comm_timeout_s || *f.checkpoint_s < kNearTimeout * *f.comm_timeout_s)
                     return {};
                   return "a checkpoint takes " + fixed(*f.checkpoint_s, 0) + " s while the others wait at most " +
                          fixed(*f.comm_timeout_s, 0) + " s in a collective";
                 },
                 "raise comm.timeout_s, or write to a faster disk (run.dir)"},
    IncidentRule{30, "mlfoundations/open_clip#136",
                 [](Facts f) -> Match {
                   const Verdict* v = verdict_of(f, Cause::kSlowDevice);
                   if (!v) return {};
                   return "one device slows all: that of " + rank(v->rank) +
                          (v->host.empty() ? "" : " on " + v->host) + " needs " + in_ms(v->late_ms) +
                          " more for the same work";
                 },
                 "run without that host or device; if the job is faster, have it repaired"},
    IncidentRule{31, "nccl#968, nccl#1063, nccl#1324",
                 [](Facts f) -> Match {
                   if (f.moving) return {};
                   const RankFacts* r = rank_where(
                       f, [](const RankFacts& x) { return x.process_state == 'T' || x.process_state == 'D'; });
                   if (!r) return {};
                   return "nothing moves because " + rank(r->rank) + " is " +
                          (r->process_state == 'T' ? "stopped (state T)" : "stuck in the kernel (state D)") +
                          "; the others spin";
                 },
                 "kill -CONT it, or see what its kernel stack waits for (/proc/<pid>/stack)"},
    IncidentRule{32, "NVIDIA/nccl#1730",
                 [](Facts f) -> Match {
                   if (f.moving || f.ranks.size() < 2 || !same_call(f)) return {};
                   if (rank_where(
                           f, [](const RankFacts& x) { return x.process_state == 'T' || x.process_state == 'D'; }))
                     return {};
                   return "all ranks are in call " + std::to_string(*f.ranks[0].call_number) + " (" +
                          f.ranks[0].call + ") and it does not end: no rank is missing, the transport is";
                 },
                 "look at the links and the network, not at the ranks' code"},
    IncidentRule{33, "NVIDIA/Megatron-LM#827",
                 [](Facts f) -> Match {
                   if (f.gradient_buckets < 4 || f.dp_exposed_share.value_or(0) < kNoOverlap) return {};
                   return in_percent(*f.dp_exposed_share) +
                          " of the gradient reduction is exposed although there are " +
                          std::to_string(f.gradient_buckets) + " buckets to overlap";
                 },
                 "check parallel.bucket_mb; on CUDA, CUDA_DEVICE_MAX_CONNECTIONS=1 serialises the queues"},
    IncidentRule{34, "Lightning-AI/litgpt#864",
                 [](Facts f) -> Match {
                   const auto slow = [](const LinkFacts& l) {
                     return l.medium == LinkMedium::kPcie || l.medium == LinkMedium::kTcp;
                   };
                   const auto link = std::find_if(f.links.begin(), f.links.end(), slow);
                   if (f.comm_share.value_or(0) < kCommBound || link == f.links.end()) return {};
                   return in_percent(*f.comm_share) + " of the step is communication over " + name(link->medium) +
                          ": more devices may be slower than one";
                 },
                 "less to move: precision.reduce: bf16, larger batch.global, parallel.tp inside a host only"},
};

}  // namespace

std::span<const IncidentRule> incidents_of_the_job() {
  return kRules;
}

}  // namespace drivetrain
