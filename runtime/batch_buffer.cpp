#include "runtime/batch_buffer.h"

namespace drivetrain {

BatchBuffer::BatchBuffer(Device& device, std::int64_t micro, std::int64_t seq)
    : device_(device),
      micro_(micro),
      seq_(seq),
      buffer_(device, static_cast<std::size_t>(micro * seq) * (sizeof(std::int64_t) + 4 * sizeof(std::int32_t))) {
  std::byte* at = buffer_.data();
  const auto place = [&](DType dtype) {
    const Tensor t(at, dtype, {micro, seq});
    at += t.bytes();
    return t;
  };
  batch_.row_keys = place(DType::kI64);
  batch_.ids = place(DType::kI32);
  batch_.targets = place(DType::kI32);
  batch_.positions = place(DType::kI32);
  batch_.doc_starts = place(DType::kI32);
}

Batch BatchBuffer::upload(const HostBatch& host) {
  const auto put = [&](Tensor dst, const auto& src, const char* what) {
    if (static_cast<std::int64_t>(src.size()) != dst.count())
      throw Error(ErrorKind::kLogic, std::string("a micro-batch has ") + std::to_string(src.size()) + " " + what +
                                         ", the step was planned for " + dst.describe());
    device_.upload(dst, std::as_bytes(std::span(src)));
  };
  put(batch_.row_keys, host.row_keys, "row keys");
  put(batch_.ids, host.ids, "token ids");
  put(batch_.targets, host.targets, "targets");
  put(batch_.positions, host.positions, "positions");
  put(batch_.doc_starts, host.doc_starts, "document starts");
  return batch_;
}

}  // namespace drivetrain
