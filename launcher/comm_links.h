// Measures the link between every two ranks of a communicator, one pair at a time while all others wait, and shows the
// figures. What they mean is link_judge.h's.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/link_judge.h"
#include "runtime/comm/communicator.h"

namespace drivetrain {

inline constexpr std::size_t kLinkMessageBytes = std::size_t{4} << 20;

// Collective; equal on all ranks. Latency from messages of 8 bytes, bandwidth from 4 MB, medians of round trips; a slow
// pair is given fewer of them, about two seconds in all.
std::vector<LinkFigure> measure_links(Communicator& world, const BenchPlace& place);

// Matrices of latency, bandwidth and kind for up to 11 ranks, a summary of each kind always.
std::string links_text(const std::vector<LinkFigure>& links, const BenchPlace& place);
nlohmann::ordered_json links_json(const std::vector<LinkFigure>& links, const BenchPlace& place);

}  // namespace drivetrain
