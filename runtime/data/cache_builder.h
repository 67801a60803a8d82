// Finds the token cache of a list of source files, or tokenises them into one. Knows nothing of samples.
#pragma once
#include <filesystem>
#include <vector>

#include "runtime/data/jsonl_reader.h"
#include "runtime/data/source_files.h"
#include "runtime/data/token_cache.h"
#include "runtime/data/tokenizer.h"

namespace drivetrain {

// Key of the cache: a hash of the bytes of the files and their order, how they are read, and the tokenizer.
// Many processes may call this at once: one per host tokenises, the others wait for it on a lock file; where the file
// system has no locks, and between hosts, each writes a file of its own and the last rename wins. Text documents end
// with end_of_text(), when there is one; pre-tokenised files are cut after each end_of_text() they hold.
TokenCache open_token_cache(const std::vector<SourceFile>& files, OnBadRecord on_bad, const Tokenizer& tokenizer,
                            const std::filesystem::path& cache_dir);

}  // namespace drivetrain
