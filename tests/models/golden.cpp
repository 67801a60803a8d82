#include "tests/models/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace drivetrain::golden {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

fs::path models_folder() {
  return fs::path(DRIVETRAIN_GOLDEN_FOLDER) / "models";
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error(file.string() + ": cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::uint64_t fnv1a64(const std::string& text) {
  std::uint64_t value = 0xCBF29CE484222325ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return value;
}

std::uint64_t splitmix64(std::uint64_t state) {
  std::uint64_t z = state + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const auto d : shape) n *= d;
  return n;
}

std::vector<Weight> parse_weights(const json& fixture) {
  std::vector<Weight> weights;
  for (const auto& w : fixture.at("weights")) {
    const auto free = w.value("undetermined", std::vector<std::int64_t>{0, 0});
    weights.push_back({w.at("name"),
                       w.at("shape"),
                       w.at("scale"),
                       w.at("offset"),
                       {free.at(0), free.at(1)},
                       w.at("first"),
                       w.at("last")});
  }
  return weights;
}

}  // namespace

std::int64_t Weight::count() const {
  return product(shape);
}

std::vector<float> Weight::values() const {
  std::vector<float> out(static_cast<std::size_t>(count()));
  const std::uint64_t start = fnv1a64(name);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float unit = static_cast<float>(splitmix64(start + i) >> 40) / 16777216.0f - 0.5f;
    out[i] = static_cast<float>(offset) + static_cast<float>(scale) * unit;
  }
  return out;
}

double Sample::distance(std::span<const float> ours) const {
  if (static_cast<std::int64_t>(ours.size()) != count) {
    throw std::invalid_argument("golden sample of " + std::to_string(count) + " elements, got " +
                                std::to_string(ours.size()));
  }
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) * stride;
    largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
    if (at >= undetermined.first && at < undetermined.second) continue;
    const double difference = std::fabs(static_cast<double>(ours[static_cast<std::size_t>(at)]) - values[i]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
  }
  return worst / largest;
}

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(models_folder())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

Fixture::Fixture(const std::string& name) : folder_(models_folder() / name) {
  const json fixture = json::parse(read_text(folder_ / "fixture.json"));
  weights_ = parse_weights(fixture);
  stride_ = fixture.at("stride");
  full_up_to_ = fixture.at("full_up_to");

  const std::string bytes = read_text(folder_ / "golden.safetensors");
  file_.resize(bytes.size());
  std::memcpy(file_.data(), bytes.data(), bytes.size());
  std::uint64_t header = 0;
  if (file_.size() < sizeof header) throw std::runtime_error(folder_.string() + ": golden.safetensors is cut");
  std::memcpy(&header, file_.data(), sizeof header);
  const json index = json::parse(bytes.substr(sizeof header, header));
  for (const auto& [key, entry] : index.items()) {
    const std::size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    if (sizeof header + header + end > file_.size())
      throw std::runtime_error(folder_.string() + ": " + key + " is cut");
    tensors_[key] = {entry.at("shape"), sizeof header + header + begin, end - begin};
  }
}

template <class T>
std::vector<T> Fixture::read(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end()) throw std::runtime_error(folder_.string() + ": no tensor " + tensor);
  std::vector<T> out(found->second.bytes / sizeof(T));
  std::memcpy(out.data(), file_.data() + found->second.begin, found->second.bytes);
  return out;
}

Case Fixture::load_case(const std::string& name) const {
  const json scalars = json::parse(read_text(folder_ / "fixture.json")).at("cases").at(name);
  Case c;
  c.logits = read<float>(name + "/logits");
  const auto& shape = tensors_.at(name + "/logits").shape;
  c.batch = shape.at(0), c.seq = shape.at(1), c.vocab = shape.at(2);
  c.ids = read<std::int32_t>(name + "/ids");
  c.targets = read<std::int32_t>(name + "/targets");
  c.positions = read<std::int32_t>(name + "/positions");
  c.doc_starts = read<std::int32_t>(name + "/doc_starts");
  c.loss = scalars.at("loss");
  c.target_count = scalars.at("target_count");
  return c;
}

Sample Fixture::sample(const std::string& tensor, const std::string& weight) const {
  for (const auto& w : weights_) {
    if (w.name != weight) continue;
    return {read<float>(tensor), w.count() > full_up_to_ ? stride_ : 1, w.count(), w.undetermined};
  }
  throw std::runtime_error(folder_.string() + ": no weight " + weight);
}

Sample Fixture::gradient(const std::string& case_name, const std::string& weight) const {
  Sample s = sample(case_name + "/grad/" + weight, weight);
  s.undetermined = {0, 0};
  return s;
}

Sample Fixture::final_weight(const std::string& weight) const {
  return sample("final/" + weight, weight);
}

Training Fixture::training() const {
  const json t = json::parse(read_text(folder_ / "fixture.json")).at("train");
  return {t.at("steps"),        t.at("cases"), t.at("lr"),     t.at("betas").at(0), t.at("betas").at(1), t.at("eps"),
          t.at("weight_decay"), t.at("clip"),  t.at("losses"), t.at("grad_norms"),  t.at("final_sums")};
}

std::string Fixture::config_json() const {
  return read_text(folder_ / "config.json");
}

void Fixture::write_folder(const fs::path& folder) const {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json", std::ios::binary) << config_json();
  std::vector<std::vector<float>> values;
  for (const auto& w : weights_) values.push_back(w.values());
  write_safetensors(folder / "model.safetensors", weights_, values);
}

void write_safetensors(const fs::path& file, const std::vector<Weight>& weights,
                       const std::vector<std::vector<float>>& values) {
  json index{{"__metadata__", {{"format", "pt"}}}};
  std::size_t end = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t begin = end;
    end += values.at(i).size() * sizeof(float);
    index[weights[i].name] = {{"dtype", "F32"}, {"shape", weights[i].shape}, {"data_offsets", {begin, end}}};
  }
  const std::string header = index.dump();
  const std::uint64_t length = header.size();
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << header;
  for (const auto& v : values) {
    out.write(reinterpret_cast<const char*>(v.data()), static_cast<std::streamsize>(v.size() * sizeof(float)));
  }
  if (!out.flush()) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace drivetrain::golden
