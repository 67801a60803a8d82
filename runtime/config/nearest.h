// The nearest known word to a misspelt one. Pure; used for configuration keys, commands and options.
#pragma once
#include <string>
#include <vector>

namespace drivetrain {

// Number of insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment).
int edit_distance(const std::string& a, const std::string& b);

// The candidate with the smallest edit distance when it is near enough to be meant (at most a third of the word, at
// least one edit), else "". Letter case is ignored. The first of equally near ones wins.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace drivetrain
