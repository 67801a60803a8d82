// Who wants to hear of finished steps beside metrics.jsonl and the ledger: the trainer calls, telemetry listens. Calls come
// from the thread that trains, between steps, and must not wait for other ranks.
#pragma once
#include <cstdint>

namespace drivetrain {

struct MetricsRow;
struct StepRecord;

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_row(const MetricsRow& row) = 0;  // every step, evaluation included
  // A step of an earlier attempt that was evaluated only now.
  virtual void on_evaluation(std::int64_t step, double loss, double perplexity) = 0;
  virtual void on_record(const StepRecord& record) = 0;  // where the step's time went on this rank
};

}  // namespace drivetrain
