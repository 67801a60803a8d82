#include "kernels/buffer.h"

#include <utility>

namespace drivetrain {

Buffer::Buffer(Device& device, std::size_t bytes)
    : data_(device.allocate(bytes)), bytes_(bytes), release_([&device](std::byte* p) { device.release(p); }) {}

Buffer::Buffer(std::byte* data, std::size_t bytes, Release release)
    : data_(data), bytes_(bytes), release_(std::move(release)) {}

Buffer::~Buffer() {
  reset();
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      release_(std::move(other.release_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    release_ = std::move(other.release_);
  }
  return *this;
}

Tensor Buffer::tensor(DType dtype) const {
  return Tensor(data_, dtype, {static_cast<std::int64_t>(bytes_ / size_of(dtype))});
}

void Buffer::reset() noexcept {
  if (data_ && release_) release_(data_);
  data_ = nullptr;
}

}  // namespace drivetrain
