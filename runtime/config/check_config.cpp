#include "runtime/config/check_config.h"

#include <cmath>

#include "kernels/error.h"
#include "runtime/telemetry/listen_address.h"

namespace drivetrain {
namespace {

using Faults = std::vector<ConfigFault>;

void check_names(const Config& c, Faults& faults) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool plain = c.run.name.find_first_not_of(kAllowed) == std::string::npos;
  if (c.run.name.empty() || c.run.name.size() > 200 || !plain || c.run.name[0] == '.' || c.run.name[0] == '-') {
    faults.push_back({{"run.name"},
                      "'" + c.run.name +
                          "' is not a folder name: letters, digits, '.', '_', '-', not starting with '.' "
                          "or '-', at most 200"});
  }
  if (c.run.dir.empty()) faults.push_back({{"run.dir"}, "is empty, wants a folder"});
  if (c.data.cache_dir.empty()) faults.push_back({{"data.cache_dir"}, "is empty, wants a folder"});
  if (c.checkpoint.resume.empty()) faults.push_back({{"checkpoint.resume"}, "is empty, wants auto, never or a path"});
  if (c.data.tokenizer.empty()) faults.push_back({{"data.tokenizer"}, "is empty, wants auto, bytes or a path"});
}

void check_sources(const Config& c, Faults& faults) {
  if (!c.model.path.empty() && !c.model.preset.empty()) {
    faults.push_back({{"model.preset", "model.path"},
                      "'" + c.model.preset + "' and model.path '" + c.model.path + "' are both given; give one"});
  }
  if (c.model.path.empty() && c.model.preset.empty()) {
    faults.push_back({{"model", "model.path", "model.preset"}, "give model.path or model.preset"});
  }
  if (c.data.train.empty()) faults.push_back({{"data.train"}, "is missing; give at least one file, folder or glob"});
  if (c.eval.every > 0 && c.data.eval.empty()) {
    faults.push_back(
        {{"eval.every", "data.eval"}, std::to_string(c.eval.every) + " needs data.eval, which is empty"});
  }
}

void check_length(const Config& c, Faults& faults) {
  if (c.steps > 0 && c.epochs > 0)
    faults.push_back({{"epochs", "steps"}, "steps and epochs are both given; give one"});
  if (c.steps == 0 && c.epochs == 0) faults.push_back({{"steps", "epochs"}, "give steps or epochs, above 0"});
  if (c.steps > 0 && c.schedule.warmup > c.steps) {
    faults.push_back({{"schedule.warmup", "steps"},
                      std::to_string(c.schedule.warmup) + " is more than steps, " + std::to_string(c.steps) +
                          "; set schedule.warmup to at most that"});
  }
  const double decay = c.schedule.decay_fraction * static_cast<double>(c.steps);
  const bool wsd = c.schedule.kind == "wsd" && c.schedule.warmup <= c.steps;
  if (c.steps > 0 && wsd && static_cast<double>(c.schedule.warmup) + decay > static_cast<double>(c.steps)) {
    faults.push_back({{"schedule.decay_fraction", "schedule.warmup", "steps"},
                      "warm-up and decay together are longer than " + std::to_string(c.steps) + " steps"});
  }
  if (c.batch.global % c.batch.micro != 0) {
    faults.push_back(
        {{"batch.global", "batch.micro"},
         std::to_string(c.batch.global) + " is not a multiple of batch.micro, " + std::to_string(c.batch.micro)});
  }
}

void check_telemetry(const Config& c, Faults& faults) {
  const std::string& where = c.telemetry.prometheus;
  if (where == "off" || listen_address(where)) return;
  faults.push_back({{"telemetry.prometheus"},
                    "'" + where +
                        "' is not off, PORT or HOST:PORT with a numeric address and a port up to 65535, "
                        "such as 9400 or 0.0.0.0:9400"});
}

}  // namespace

std::vector<ConfigFault> check_config(const Config& config) {
  Faults faults;
  check_names(config, faults);
  check_sources(config, faults);
  check_length(config, faults);
  check_telemetry(config, faults);
  return faults;
}

void check_for_ranks(const Config& config, int ranks) {
  std::string faults;
  const int tp = config.parallel.tp;
  if (ranks % tp != 0) {
    faults += "\n  parallel.tp: " + std::to_string(tp) + " does not divide " + std::to_string(ranks) +
              " ranks; start a multiple of " + std::to_string(tp) + " or change parallel.tp";
  } else {
    const std::int64_t at_once = config.batch.micro * (ranks / tp);
    if (config.batch.global % at_once != 0) {
      faults += "\n  batch.global: " + std::to_string(config.batch.global) + " is not a multiple of " +
                std::to_string(at_once) + " (batch.micro " + std::to_string(config.batch.micro) + " x " +
                std::to_string(ranks / tp) + " data ranks)";
    }
  }
  if (!faults.empty()) {
    throw Error(ErrorKind::kConfig, "the configuration does not fit " + std::to_string(ranks) + " ranks:" + faults);
  }
}

}  // namespace drivetrain
