#include "runtime/data/bpe_model.h"

#include <xxhash.h>

#include <algorithm>

#include "kernels/error.h"
#include "runtime/data/byte_alphabet.h"

namespace drivetrain {
namespace {

constexpr std::size_t kLongestKept = 256, kMostKept = 1 << 16;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

std::int32_t id_of(const BpeSpec& spec, const std::string& token, const std::string& why) {
  const auto found = spec.vocab.find(token);
  if (found == spec.vocab.end()) {
    throw Error(ErrorKind::kData, why + ": token '" + token + "' is not in the vocabulary");
  }
  return found->second;
}

}  // namespace

std::size_t TextHash::operator()(std::string_view text) const {
  return XXH3_64bits(text.data(), text.size());
}

std::size_t BpeModel::PairHash::operator()(std::uint64_t pair) const {
  pair *= 0x9E3779B97F4A7C15u;
  return pair ^ (pair >> 32);
}

BpeModel::BpeModel(const BpeSpec& spec) {
  load_bytes(spec);
  load_merges(spec);
}

void BpeModel::load_bytes(const BpeSpec& spec) {
  byte_ids_.fill(-1);
  std::unordered_map<std::int32_t, const std::string*> owner;
  for (const auto& [token, id] : spec.vocab) {
    const auto [at, fresh] = owner.emplace(id, &token);
    if (!fresh) {
      throw Error(ErrorKind::kData,
                  "tokens '" + *at->second + "' and '" + token + "' share id " + std::to_string(id));
    }
    const auto bytes = bytes_of_token(token);
    if (!bytes) continue;
    if (bytes->size() == 1) byte_ids_[static_cast<unsigned char>((*bytes)[0])] = id;
    if (spec.ignore_merges) whole_.emplace(*bytes, id);
  }
  const bool lacks_bytes = std::find(byte_ids_.begin(), byte_ids_.end(), -1) != byte_ids_.end();
  if (spec.unk_token && lacks_bytes) unk_id_ = id_of(spec, *spec.unk_token, "unk_token");
  fuse_unk_ = spec.fuse_unk;
}

void BpeModel::load_merges(const BpeSpec& spec) {
  merges_.reserve(spec.merges.size());
  std::int32_t rank = 0;
  for (const auto& [left, right] : spec.merges) {
    const std::string why = "merge " + std::to_string(rank + 1);
    const std::int32_t new_id = id_of(spec, left + right, why);
    merges_[pair_key(id_of(spec, left, why), id_of(spec, right, why))] = {rank++, new_id};
  }
}

const BpeModel::Merge* BpeModel::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BpeModel::encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  if (const auto whole = whole_.find(piece); whole != whole_.end()) {
    ids.push_back(whole->second);
    return;
  }
  if (const auto seen = scratch.seen_.find(piece); seen != scratch.seen_.end()) {
    ids.insert(ids.end(), seen->second.begin(), seen->second.end());
    return;
  }
  start(piece, scratch);
  merge(scratch);
  const std::size_t before = ids.size();
  for (const auto& symbol : scratch.symbols_) {
    if (symbol.id >= 0) ids.push_back(symbol.id);
  }
  if (piece.size() <= kLongestKept && scratch.seen_.size() < kMostKept) {
    scratch.seen_.emplace(piece, std::vector(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
  }
}

// One symbol a byte. Bytes that the vocabulary lacks become the unknown token, or nothing when there is none.
void BpeModel::start(std::string_view piece, Scratch& scratch) const {
  auto& symbols = scratch.symbols_;
  symbols.clear();
  bool after_unknown = false;
  for (const char c : piece) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    const bool unknown = id < 0;
    if (unknown && (unk_id_ < 0 || (fuse_unk_ && after_unknown))) continue;
    const auto place = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({unknown ? unk_id_ : id, place - 1, place + 1});
    after_unknown = unknown;
  }
  if (!symbols.empty()) symbols.back().next = -1;
}

void BpeModel::push(Scratch& scratch, std::int32_t place) const {
  const auto& symbol = scratch.symbols_[static_cast<std::size_t>(place)];
  if (symbol.next < 0) return;
  const Merge* found = merge_of(symbol.id, scratch.symbols_[static_cast<std::size_t>(symbol.next)].id);
  if (!found) return;
  scratch.heap_.push_back({found->rank, place, found->new_id});
  std::push_heap(scratch.heap_.begin(), scratch.heap_.end(), std::greater{});
}

// Lowest rank first, leftmost first among equals. An entry whose symbols have changed since is passed over.
void BpeModel::merge(Scratch& scratch) const {
  auto& symbols = scratch.symbols_;
  auto& heap = scratch.heap_;
  heap.clear();
  for (std::size_t i = 0; i < symbols.size(); ++i) push(scratch, static_cast<std::int32_t>(i));
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater{});
    const auto top = heap.back();
    heap.pop_back();
    auto& left = symbols[static_cast<std::size_t>(top.place)];
    if (left.id < 0 || left.next < 0) continue;
    auto& right = symbols[static_cast<std::size_t>(left.next)];
    const Merge* now = merge_of(left.id, right.id);
    if (!now || now->new_id != top.new_id) continue;
    left.id = top.new_id;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].prev = top.place;
    if (left.prev >= 0) push(scratch, left.prev);
    push(scratch, top.place);
  }
}

}  // namespace drivetrain
