// The configuration of a run: plain data, immutable after load. load_config() reports every fault at once.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/tensor.h"

namespace drivetrain {

struct Config {
  struct Run {
    std::string name = "run";
    std::string dir = "runs";  // the run folder is dir/name
    std::uint64_t seed = 7;
  } run;
  std::string device = "auto";  // cpu | cuda | cuda-emu | auto
  struct Model {
    std::string path;                              // Hugging Face folder; or
    std::string preset;                            // name in models/presets
    std::string init = "auto";                     // auto (weights of path, else random) | random
    std::map<std::string, std::string> override_;  // "override: {layers: 2, dropout: 0.1}" on a preset or config.json
  } model;
  struct Data {
    std::vector<std::string> train, eval;  // files, folders or globs
    std::string format = "auto";           // auto | text | jsonl | tokens
    std::string tokenizer = "auto";        // auto (of model.path, else bytes) | bytes | path of a tokenizer.json
    std::string cache_dir = ".cache/drivetrain";
    std::int64_t seq_len = 0;  // 0: the model's positions, at most 1024
    bool packing = true;
    bool shuffle = true;
    std::string on_error = "stop";    // stop | skip a bad record
    int workers = -1;                 // -1 auto
    std::string token_dtype = "u16";  // of pre-tokenised files: u16 | u32
  } data;
  struct BatchShape {
    std::int64_t global = 0;  // sequences per optimizer step; 0: micro * dp
    std::int64_t micro = 1;   // sequences per rank and forward
  } batch;
  struct Parallel {
    int tp = 1;
    std::string sequence = "auto";  // auto (on when tp > 1) | on | off
    int zero = 1;                   // 0 | 1
    double bucket_mb = 25;
  } parallel;
  struct Precision {
    std::string compute = "bf16";  // fp32 | bf16 | fp16
    std::string reduce = "fp32";   // fp32 | bf16
    double loss_scale = 65536;     // fp16: initial dynamic scale
  } precision;
  struct Memory {
    std::string recompute = "none";  // none | selective | full
    double limit_gb = 0;             // 0: what the machine has
  } memory;
  struct Optimizer {
    std::string name = "adamw";
    double lr = 3e-4;
    std::vector<double> betas{0.9, 0.95};
    double eps = 1e-8, weight_decay = 0.1, clip = 1.0;  // clip 0: off
  } optimizer;
  struct Schedule {
    std::string kind = "cosine";  // constant | linear | cosine | wsd
    std::int64_t warmup = 0;
    double min_ratio = 0.1;
    double decay_fraction = 0.2;  // wsd: share of the steps that decay
  } schedule;
  std::int64_t steps = 0;  // or epochs
  double epochs = 0;
  struct Checkpoint {
    std::int64_t every = 0;  // 0: only at the end and on a stop signal
    std::int64_t keep = 3;   // 0: all
    bool at_end = true;
    std::string resume = "auto";  // auto (newest complete one of this run) | never | path
  } checkpoint;
  struct Eval {
    std::int64_t every = 0;    // 0: only at the end
    std::int64_t batches = 0;  // micro-batches per data rank; 0: all
  } eval;
  struct Comm {
    std::string transport = "auto";  // auto | shm | mpi | host
    bool check = true;
    std::int64_t timeout_s = 300;
    std::int64_t init_timeout_s = 300;
    std::int64_t checkpoint_timeout_s = 1800;
    std::string progress = "auto";  // auto | on | off
  } comm;
  struct Telemetry {
    std::int64_t every = 1;          // steps between lines
    std::string progress = "auto";   // auto | bar | lines | off
    double peak_tflops = 0;          // per device; 0: known device or measured CPU
    std::string prometheus = "off";  // off | PORT | HOST:PORT
    bool tensorboard = false;
    bool monitor = true;         // samples of device and host
    double monitor_every_s = 1;  // seconds between two
    std::string links_script;    // JSON that stands for the machine's links; empty: read them
    bool report = true;
  } telemetry;
  struct Sample {        // a text generated when training ends
    std::string prompt;  // empty: none
    std::int64_t tokens = 64;
    double temperature = 0.8;
    std::int64_t top_k = 0;
    double top_p = 1.0;
  } sample;

  std::filesystem::path run_folder() const { return std::filesystem::path(run.dir) / run.name; }
};

struct ConfigOverride {
  std::string key, value;  // "optimizer.lr", "1e-3" (YAML text)
};

// Reads a YAML file and applies overrides (`--set a.b=c`), then validates. Throws one Error(kConfig) whose message has
// one line per fault: file:line: key: value, allowed range, nearest known key. An override of steps, epochs, model.path
// or model.preset displaces its counterpart in the file. Relative paths inside the file that
// name inputs are taken from the current directory.
Config load_config(const std::filesystem::path& file, const std::vector<ConfigOverride>& overrides);
// Throws one Error(kConfig) when the configuration cannot run on this many ranks: tp must divide ranks, and batch.global
// must be a multiple of batch.micro times the data ranks.
void check_for_ranks(const Config& config, int ranks);
// The resolved configuration as YAML, with defaults and, as a comment, where each value came from.
std::string resolved_yaml(const std::filesystem::path& file, const std::vector<ConfigOverride>& overrides);
// One entry per key, for docs/config.md and --help.
struct ConfigKey {
  std::string key, type, default_value, allowed, help;
};
std::vector<ConfigKey> config_keys();

}  // namespace drivetrain
