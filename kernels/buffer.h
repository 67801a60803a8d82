// Buffer owns one allocation, from a device or from anybody who gives a release function (shared memory).
#pragma once
#include <cstddef>
#include <functional>

#include "kernels/device.h"

namespace drivetrain {

class Buffer {
 public:
  using Release = std::function<void(std::byte*)>;

  Buffer() = default;
  Buffer(Device& device, std::size_t bytes);
  Buffer(std::byte* data, std::size_t bytes, Release release);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // The whole buffer as one row of elements.
  Tensor tensor(DType dtype) const;

 private:
  void reset() noexcept;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_;
};

}  // namespace drivetrain
