// A group of ranks and its collectives. Transports: self, threads, shared memory, MPI, hierarchical; picked by
// open_world(). Knows tensors, not models.
//
// Shapes. Counts are elements, taken from the tensors; shape beyond the count is ignored. Every type of DType; all
// tensors of a call have one type. Data lies in host memory, ordinary or from symmetric_buffer(), which needs no copy.
// Zero elements and null pointers are allowed, and so are more than 2^31 elements.
// Results. Bit-identical on every rank, on every transport: reductions fold in the order of group ranks. 16-bit types
// accumulate in f32 and round once; f32 and f64 in their own type; integers wrap; an average divides the sum by size(),
// integers towards zero, their sum 64 bits wide; a NaN on any rank gives NaN.
// Order. All ranks of a group make the same calls in the same order, and a group carries its calls out in that order.
// Different groups are independent of each other. A program must be free of deadlock if every call blocked: whether
// calls go on in the background (asynchronous()) is a matter of speed alone.
// Threads. A communicator, its Works included, is used by one thread at a time; different communicators by different
// threads at once. abort() may be called from any thread at any time.
// Lifetime. Tensors stay valid and are left alone until the Work has been waited for. Communicators outlive their Works;
// those they were split from may go first. Symmetric buffers are released on all ranks together.
// Errors. kLogic at once, on this rank alone and without effect, for arguments that one rank can see to be wrong.
// Everything else is told to all ranks, each with the first error, by the call or by Work::wait(): kComm for calls that
// do not match (both are named), a peer that died or left, or abort(); kHang when a call passes its deadline, naming
// the ranks that are absent and what they do. The world is then broken: every later call on any of its communicators
// throws the same error.
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
  std::int64_t bytes = 0;            // of the larger tensor on this rank
  int last_rank = -1;                // of the group: who arrived last; -1 where the transport cannot tell
};

// A collective on its way, or over when the transport blocks. Copies share it.
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
  // Afterwards the tensors are the caller's again and hold the result (on a device, for the compute lane). Throws what
  // the collective ended with; may be called again.
  void wait() {
    if (state_) state_->wait();
  }
  // Valid once waited for.
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
  virtual int rank() const = 0;  // inside this group, from 0
  virtual int size() const = 0;
  virtual std::string transport() const = 0;  // "self", "threads", "shm", "mpi", "hierarchical", "plan"
  // Collectives go on in the background while the caller computes. Otherwise each is over when it returns, but for
  // send(), which goes on whenever its rank waits for something in the group.
  virtual bool asynchronous() const { return false; }

  // x becomes op over the ranks' x.
  [[nodiscard]] virtual Work all_reduce(Tensor x, ReduceOp op) = 0;
  // out: size() shares in rank order, each rank's `in`. in may be the own share of out.
  [[nodiscard]] virtual Work all_gather(Tensor out, Tensor in) = 0;
  // in: size() shares in rank order. out: op over the ranks of this rank's share; may be that share of in. Other shares
  // of in may be overwritten.
  [[nodiscard]] virtual Work reduce_scatter(Tensor out, Tensor in, ReduceOp op) = 0;
  // x of `root`, a rank of this group, reaches all.
  [[nodiscard]] virtual Work broadcast(Tensor x, int root) = 0;
  // x of `root` becomes op over the ranks' x; elsewhere x may be overwritten.
  [[nodiscard]] virtual Work reduce(Tensor x, int root, ReduceOp op) = 0;
  // Share r of in goes to rank r, share r of out comes from it; in and out do not overlap.
  [[nodiscard]] virtual Work all_to_all(Tensor out, Tensor in) = 0;
  // To and from another rank of this group; messages of one sender arrive in order. Types and counts must be equal.
  // Wait for a send before waiting for anything in another group: its data moves while its rank is in this group.
  [[nodiscard]] virtual Work send(Tensor x, int to) = 0;
  [[nodiscard]] virtual Work recv(Tensor x, int from) = 0;
  virtual void barrier() = 0;  // returns once all ranks are here

  // Ranks with the same color form a group, ordered by (key, rank). color < 0: this rank joins none (null).
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  // Memory that peers can reach without a copy: `bytes` may differ between ranks. Collective over the group. Contents
  // undefined. From `device` where the transport has none of its own; the device outlives it.
  virtual Buffer symmetric_buffer(Device& device, std::size_t bytes) = 0;
  // The deadline of later collectives of this rank, on every communicator that came from the same world; of those in
  // flight too, perhaps. Local; any thread. Returns the one before.
  virtual Deadline set_deadline(Deadline deadline) = 0;
  // Ends the world for everybody: pending and later calls of every rank throw kComm with `reason`.
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
