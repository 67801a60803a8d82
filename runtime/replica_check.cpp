#include "runtime/replica_check.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace drivetrain {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 20;

// A multiplicative hash over 8-byte words (constant: 2^64 / golden ratio); the tail is filled with zeros.
std::uint64_t mix(std::uint64_t hash, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = std::rotl((hash ^ word) * 0x9e3779b97f4a7c15u, 29);
  }
  return hash;
}

// Largest minus smallest value of each number over the group, by one reduction of x and -x. Hashes are cut to 52 bits,
// which a double holds exactly.
std::vector<bool> differs(Device& device, Communicator& group, const std::vector<std::uint64_t>& hashes) {
  const std::size_t n = hashes.size();
  std::vector<double> both(2 * n);
  for (std::size_t i = 0; i < n; ++i) {
    both[i] = static_cast<double>(hashes[i] >> 12);
    both[n + i] = -both[i];
  }
  const Buffer buffer(device, both.size() * sizeof(double));
  device.upload(buffer.tensor(DType::kF64), std::as_bytes(std::span(both)));
  group.all_reduce(buffer.tensor(DType::kF64), ReduceOp::kMax).wait();
  device.download(std::as_writable_bytes(std::span(both)), buffer.tensor(DType::kF64));
  std::vector<bool> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = both[i] != -both[n + i];
  return out;
}

}  // namespace

std::vector<std::uint64_t> hash_values(Device& device, const ParamStore& store) {
  std::vector<std::uint64_t> out;
  std::vector<std::byte> host;
  for (const Parameter* p : store.parameters()) {
    std::uint64_t hash = 0;
    for (std::int64_t begin = 0; begin < p->value.count(); begin += kChunk) {
      const Tensor part = p->value.flat(begin, std::min(kChunk, p->value.count() - begin));
      host.resize(part.bytes());
      device.download(host, part);
      hash = mix(hash, host);
    }
    out.push_back(hash);
  }
  return out;
}

void check_replicas(Device& device, const ParamStore& store, Mesh& mesh) {
  if (store.parameters().empty() || mesh.world().size() == 1) return;
  const std::vector<std::uint64_t> hashes = hash_values(device, store);
  std::vector<bool> over_dp = differs(device, mesh.dp(), hashes);
  const std::vector<bool> over_tp = differs(device, mesh.tp(), hashes);
  std::vector<std::uint64_t> found(hashes.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool replicated = store.parameters()[i]->split == Split::kNone;
    found[i] = static_cast<std::uint64_t>(over_dp[i] || (replicated && over_tp[i])) << 12;
  }
  // What one group found, all ranks report.
  const std::vector<bool> elsewhere = differs(device, mesh.world(), found);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != 0 || elsewhere[i])
      throw Error(ErrorKind::kLogic, "ranks that should start from equal weights differ in " +
                                         store.parameters()[i]->name +
                                         ": initialisation or loading depends on the rank");
}

}  // namespace drivetrain
