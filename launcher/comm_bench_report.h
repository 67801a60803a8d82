// The figures of `comm bench` as a table for people and as JSON for scripts; docs/collectives.md lists the fields.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/comm_bench.h"
#include "launcher/comm_bench_place.h"

namespace drivetrain {

struct MpiFacts {
  std::string library;                            // "" without MPI in the comparison
  std::string settings;                           // "default", "tuned", or "by hand" under somebody's own mpirun
  std::map<std::string, std::string> parameters;  // MCA parameters of the environment
};

struct BenchFacts {
  BenchPlace place;
  MpiFacts mpi;
};

// Lines that start with '#'; they fit 100 columns. Who runs where over what.
std::string place_text(const BenchRequest& request, const BenchFacts& facts);
// The same and how the rows of a sweep are to be read.
std::string header_text(const BenchRequest& request, const BenchFacts& facts);
// Begins a block of rows of one op, type and placing.
std::string block_text(const BenchRequest& request, const BenchRow& row);
std::string row_text(const BenchRequest& request, const BenchRow& row);

nlohmann::ordered_json meta_json(const BenchRequest& request, const BenchFacts& facts);
nlohmann::ordered_json row_json(const BenchRow& row);

}  // namespace drivetrain
