// A group of ranks and its collectives. Transports: self, threads, shared memory, MPI, hierarchical; picked by
// open_world(). Knows tensors, not models.
//
// Order: every rank of a group calls the same collectives in the same order. Element counts come from the tensors.
// Results are bit-identical on every rank: reductions add in the order of group ranks, 16-bit types in f32.
// One communicator is used by one thread at a time.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/buffer.h"
#include "kernels/tensor.h"

namespace drivetrain {

enum class ReduceOp { kSum, kMax, kMin, kAverage };

// When a collective happened on this rank, for the ledger (steady clock, nanoseconds).
struct CollectiveTiming {
  std::int64_t arrival_ns = 0;       // this rank entered
  std::int64_t last_arrival_ns = 0;  // the last rank of the group entered; 0 where the transport cannot tell
  std::int64_t end_ns = 0;           // done on this rank
  std::int64_t bytes = 0;
  int last_rank = -1;  // of the group: who arrived last; -1 where the transport cannot tell
};

// A collective in flight. wait() makes the compute lane wait for it; on the CPU it is already done.
class Work {
 public:
  class State {
   public:
    virtual ~State() = default;
    virtual void wait() = 0;
    virtual CollectiveTiming timing() const = 0;
  };
  Work() = default;
  explicit Work(CollectiveTiming done) : timing_(done) {}
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void wait() {
    if (state_) state_->wait();
  }
  CollectiveTiming timing() const { return state_ ? state_->timing() : timing_; }
  bool pending() const { return state_ != nullptr; }  // false: over when the call returned

 private:
  std::shared_ptr<State> state_;
  CollectiveTiming timing_;
};

// How long a collective may wait for its peers, and the configuration key that says so (for the error).
struct Deadline {
  std::chrono::milliseconds limit{300000};
  const char* key = "comm.timeout_s";
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // inside this group
  virtual int size() const = 0;
  virtual std::string transport() const = 0;  // "self", "threads", "shm", "mpi", "hierarchical", "plan"

  [[nodiscard]] virtual Work all_reduce(Tensor x, ReduceOp op) = 0;  // in place
  // out has size() times the elements of in, ordered by rank; in may be out's own slice.
  [[nodiscard]] virtual Work all_gather(Tensor out, Tensor in) = 0;
  // in has size() times the elements of out; out may be in's own slice. `in` may be clobbered.
  [[nodiscard]] virtual Work reduce_scatter(Tensor out, Tensor in, ReduceOp op) = 0;
  [[nodiscard]] virtual Work broadcast(Tensor x, int root) = 0;
  [[nodiscard]] virtual Work reduce(Tensor x, int root, ReduceOp op) = 0;  // result on root only
  [[nodiscard]] virtual Work all_to_all(Tensor out, Tensor in) = 0;        // equal chunks
  [[nodiscard]] virtual Work send(Tensor x, int to) = 0;
  [[nodiscard]] virtual Work recv(Tensor x, int from) = 0;
  virtual void barrier() = 0;

  // Ranks with the same color form a group, ordered by (key, rank). color < 0: this rank joins none (null).
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  // Memory that peers can reach without a copy. Collective over the group. Ordinary memory where the transport has none.
  virtual Buffer symmetric_buffer(Device& device, std::size_t bytes) = 0;
  // The deadline of later collectives of this rank, on every communicator that came from the same world. Local; any
  // thread. Returns the one before.
  virtual Deadline set_deadline(Deadline deadline) = 0;
  // Wakes every peer of the world with an Error(kComm) that carries `reason`.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// Another deadline for a phase that takes its time (saving a checkpoint). Every rank of the phase makes one.
class DeadlineScope {
 public:
  DeadlineScope(Communicator& of, Deadline deadline) : of_(of), before_(of.set_deadline(deadline)) {}
  ~DeadlineScope() { of_.set_deadline(before_); }
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;

 private:
  Communicator& of_;
  Deadline before_;
};

}  // namespace drivetrain
