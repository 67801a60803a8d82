#include "runtime/checkpoint/hash.h"

#include <xxhash.h>

#include <new>

#include "kernels/error.h"

namespace drivetrain {

void Hasher::Release::operator()(XXH3_state_s* state) const noexcept {
  XXH3_freeState(state);
}

Hasher::Hasher() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  if (XXH3_128bits_reset(state_.get()) != XXH_OK) throw Error(ErrorKind::kLogic, "XXH3-128 could not be started");
}

void Hasher::add(std::span<const std::byte> bytes) {
  if (!bytes.empty() && XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()) != XXH_OK)
    throw Error(ErrorKind::kLogic, "XXH3-128 refused its input");
}

std::string Hasher::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace drivetrain
