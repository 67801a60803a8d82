// The clock of the ledger's tests: it moves when told.
#pragma once
#include <cstdint>

namespace drivetrain::test {

inline std::int64_t fake_now_ns = 0;
inline std::int64_t fake_clock() {
  return fake_now_ns;
}
inline void pass(std::int64_t ns) {
  fake_now_ns += ns;
}

}  // namespace drivetrain::test
