#include "runtime/ledger/own_work.h"

#include "kernels/ops.h"

namespace drivetrain {
namespace {

void count_document(OwnWork& work, std::int64_t length, std::int32_t first_target) {
  if (length == 0 || (length == 1 && first_target == Ops::kIgnore)) return;
  work.tokens += length;
  work.length_squares += static_cast<double>(length) * static_cast<double>(length);
}

}  // namespace

OwnWork own_work(const StepBatch& window, std::int64_t seq) {
  OwnWork work;
  for (const HostBatch& batch : window.micro) {
    const auto rows = static_cast<std::int64_t>(batch.doc_starts.size()) / seq;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int32_t* starts = batch.doc_starts.data() + row * seq;
      const std::int32_t* targets = batch.targets.data() + row * seq;
      std::int64_t begin = 0;
      for (std::int64_t t = 1; t < seq; ++t) {
        if (starts[t] != t) continue;
        count_document(work, t - begin, targets[begin]);
        begin = t;
      }
      count_document(work, seq - begin, targets[begin]);
    }
  }
  return work;
}

}  // namespace drivetrain
