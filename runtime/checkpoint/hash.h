// XXH3-128 of a stream of bytes, as the hexadecimal text that `xxh128sum` prints. Detects damage, not malice.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct XXH3_state_s;

namespace drivetrain {

class Hasher {
 public:
  Hasher();
  void add(std::span<const std::byte> bytes);
  std::string hex() const;  // 32 digits, of all bytes so far

 private:
  struct Release {
    void operator()(XXH3_state_s* state) const noexcept;
  };
  std::unique_ptr<XXH3_state_s, Release> state_;
};

}  // namespace drivetrain
