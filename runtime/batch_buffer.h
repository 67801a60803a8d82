// The device memory of one micro-batch: host batches are uploaded into it one after the other.
#pragma once
#include <cstdint>

#include "runtime/data/loader.h"
#include "runtime/model.h"

namespace drivetrain {

class BatchBuffer {
 public:
  BatchBuffer(Device& device, std::int64_t micro, std::int64_t seq);
  // Ordered on the compute lane: the batch before it may still be in use. Throws kLogic when the sizes do not fit.
  Batch upload(const HostBatch& host);

 private:
  Device& device_;
  std::int64_t micro_, seq_;
  Buffer buffer_;
  Batch batch_;
};

}  // namespace drivetrain
