// Byte pair encoding of one piece of text. Knows nothing of how text is cut into pieces.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/data/tokenizer_spec.h"

namespace drivetrain {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const;
};
template <class V>
using TextMap = std::unordered_map<std::string, V, TextHash, std::equal_to<>>;

class BpeModel {
 public:
  // What a thread needs while it encodes: room for one piece, and the pieces it has seen.
  class Scratch {
    friend class BpeModel;
    struct Symbol {
      std::int32_t id, prev, next;  // places of the neighbours; -1: none; id -1: merged into another
    };
    struct Candidate {
      std::int32_t rank, place, new_id;
      bool operator>(const Candidate& other) const {
        return rank != other.rank ? rank > other.rank : place > other.place;
      }
    };
    std::vector<Symbol> symbols_;
    std::vector<Candidate> heap_;
    TextMap<std::vector<std::int32_t>> seen_;
  };

  // Throws kData for merges that name tokens outside the vocabulary and for ids that two tokens share.
  explicit BpeModel(const BpeSpec& spec);
  // Appends the ids of a piece of raw bytes, not empty.
  void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const;

 private:
  struct Merge {
    std::int32_t rank, new_id;
  };
  struct PairHash {
    std::size_t operator()(std::uint64_t pair) const;
  };
  void load_bytes(const BpeSpec& spec);
  void load_merges(const BpeSpec& spec);
  const Merge* merge_of(std::int32_t left, std::int32_t right) const;
  void start(std::string_view piece, Scratch& scratch) const;
  void push(Scratch& scratch, std::int32_t place) const;
  void merge(Scratch& scratch) const;

  std::array<std::int32_t, 256> byte_ids_{};  // -1: the vocabulary lacks the byte
  std::int32_t unk_id_ = -1;
  bool fuse_unk_ = false;
  std::unordered_map<std::uint64_t, Merge, PairHash> merges_;
  TextMap<std::int32_t> whole_;  // pieces that are a token before any merge (ignore_merges)
};

}  // namespace drivetrain
