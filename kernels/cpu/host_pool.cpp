#include "kernels/cpu/host_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

#include "kernels/cpu/parallel.h"
#include "kernels/error.h"

namespace drivetrain::cpu {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Large blocks are whole huge pages, small ones whole pages.
std::size_t block_size(std::size_t bytes) {
  const std::size_t unit = bytes >= kHugePage ? kHugePage : HostPool::kAlignment;
  return round_up(bytes == 0 ? 1 : bytes, unit);
}

std::size_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : SIZE_MAX;
}

// The threads that will work on the block touch it, each its share, so that the pages lie near them.
void touch(std::byte* p, std::size_t bytes) {
  const auto pages = static_cast<std::int64_t>(bytes / HostPool::kAlignment);
  parallel_for(pages, 512, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      *const_cast<volatile std::byte*>(p + static_cast<std::size_t>(i) * HostPool::kAlignment) = std::byte{0};
  });
}

std::byte* map_block(std::size_t block) {
  const std::size_t alignment = block >= kHugePage ? kHugePage : HostPool::kAlignment;
  void* p = std::aligned_alloc(alignment, block);
  if (p && block >= kHugePage) madvise(p, block, MADV_HUGEPAGE);  // advice: a refusal only costs speed
  return static_cast<std::byte*>(p);
}

}  // namespace

HostPool::~HostPool() {
  trim_kept(0);
  for (const auto& [p, block] : used_) std::free(p);
}

std::byte* HostPool::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t block = bytes <= physical_bytes() ? block_size(bytes) : 0;
  std::byte* p = block ? take_kept(block) : nullptr;
  if (p) return p;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_ + block);
  trim_kept(peak_bytes_ - used_bytes_ - block);
  p = block ? map_block(block) : nullptr;
  if (!p)
    throw Error(ErrorKind::kMemory, "cannot allocate " + std::to_string(bytes) +
                                        " bytes: " + std::to_string(used_bytes_) +
                                        " are in use and the machine has " + std::to_string(physical_bytes()) +
                                        "; take a smaller batch.micro, a shorter data.seq_len or more ranks");
  touch(p, block);
  used_.emplace(p, block);
  used_bytes_ += block;
  return p;
}

// A kept block serves when it wastes at most a quarter of what is wanted.
std::byte* HostPool::take_kept(std::size_t block) {
  const auto it = kept_.lower_bound(block);
  if (it == kept_.end() || it->first > block + block / 4) return nullptr;
  const auto [size, p] = *it;
  used_.emplace(p, size);
  kept_.erase(it);
  kept_bytes_ -= size;
  used_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return p;
}

void HostPool::release(std::byte* p) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(p);
  if (it == used_.end()) return;
  const std::size_t block = it->second;
  used_.erase(it);
  used_bytes_ -= block;
  try {
    kept_.emplace(block, p);
    kept_bytes_ += block;
  } catch (...) {
    std::free(p);
  }
}

void HostPool::trim_kept(std::size_t limit) noexcept {
  while (kept_bytes_ > limit) {
    const auto largest = std::prev(kept_.end());
    kept_bytes_ -= largest->first;
    std::free(largest->second);
    kept_.erase(largest);
  }
}

std::size_t HostPool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

std::size_t HostPool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_ + kept_bytes_;
}

Scratch::~Scratch() {
  if (data_) pool_.release(data_);
}

std::byte* Scratch::need(std::size_t bytes) {
  if (bytes > bytes_) {
    if (data_) pool_.release(data_);
    data_ = nullptr;
    bytes_ = 0;
    data_ = pool_.allocate(bytes);
    bytes_ = bytes;
  }
  return data_;
}

}  // namespace drivetrain::cpu
