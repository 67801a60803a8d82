// Brings text into the normal form that a tokenizer was trained on. Does not split it.
// The tables are utf8proc's. Those of Hugging Face tokenizers 0.23 are older and leave characters alone that came with
// Unicode 10 and later: some 60 marks of rare scripts may be ordered otherwise there, and NFKC of some letters differs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/tokenizer_spec.h"

namespace drivetrain {

class Normalizer {
 public:
  explicit Normalizer(std::vector<NormalStep> steps) : steps_(std::move(steps)) {}
  // text (valid UTF-8) itself where no step changes it, else `storage` filled with the result.
  std::string_view normalize(std::string_view text, std::string& storage) const;
  static std::string version();  // of the Unicode tables

 private:
  std::vector<NormalStep> steps_;
};

}  // namespace drivetrain
