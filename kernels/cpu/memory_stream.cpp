#include "kernels/cpu/memory_stream.h"

#include <cstdint>

#include "kernels/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/memory_stream.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void stream_lines(std::uint8_t* memory, std::size_t lines, std::size_t places) {
  constexpr std::size_t kLine = 64, kAhead = 24 * kLine;
  const hn::CappedTag<std::uint8_t, kLine> d;
  const auto one = hn::Set(d, 1);
  const std::size_t width = hn::Lanes(d);
  for (std::size_t line = 0; line < lines; ++line) {
    for (std::size_t p = 0; p < places; ++p) {
      std::uint8_t* const at = memory + (p * lines + line) * kLine;
      if ((lines - line) * kLine > kAhead) hwy::Prefetch(at + kAhead);
      for (std::size_t i = 0; i < kLine; i += width) hn::StoreU(hn::Add(hn::LoadU(d, at + i), one), d, at + i);
    }
  }
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(stream_lines);

void stream_through(std::span<std::byte> memory, std::size_t places) {
  if (places == 0) throw Error(ErrorKind::kLogic, "a stream through memory at no place");
  auto* const bytes = reinterpret_cast<std::uint8_t*>(memory.data());
  HWY_DYNAMIC_DISPATCH(stream_lines)(bytes, memory.size() / 64 / places, places);
}

}  // namespace drivetrain::cpu
#endif  // HWY_ONCE
