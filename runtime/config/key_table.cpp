#include "runtime/config/key_table.h"

#include <algorithm>

namespace drivetrain {
namespace {

constexpr double kMostCount = 1e12;  // steps, sequences
constexpr double kMostTokens = 1e8;  // one sequence
constexpr double kMostThreads = 4096;

constexpr KeyLimits any() {
  return {};
}
constexpr KeyLimits choice(std::string_view words) {
  KeyLimits limits;
  limits.choices = words;
  return limits;
}
constexpr KeyLimits between(double low, double high) {
  KeyLimits limits;
  limits.low = low;
  limits.high = high;
  return limits;
}
constexpr KeyLimits at_least(double low) {
  KeyLimits limits;
  limits.low = low;
  return limits;
}
constexpr KeyLimits above(double low) {
  KeyLimits limits;
  limits.low = low;
  limits.low_bound = Bound::kOpen;
  return limits;
}
constexpr KeyLimits below(KeyLimits limits, double high) {
  limits.high = high;
  limits.high_bound = Bound::kOpen;
  return limits;
}
constexpr KeyLimits up_to(KeyLimits limits, double high) {
  limits.high = high;
  return limits;
}
constexpr KeyLimits or_word(KeyLimits limits, std::string_view word, double value) {
  limits.choices = word;
  limits.word_value = value;
  return limits;
}

constexpr KeyRow kRows[] = {
    {"run.name", [](Config& c) -> KeySlot { return &c.run.name; }, any(),
     "Name of the run; letters, digits, `.`, `_`, `-`. The run folder is `dir`/`name`."},
    {"run.dir", [](Config& c) -> KeySlot { return &c.run.dir; }, any(), "Folder that holds the runs."},
    {"run.seed", [](Config& c) -> KeySlot { return &c.run.seed; }, any(),
     "Seed of every random choice: weights, shuffle, dropout, sampling."},
    {"device", [](Config& c) -> KeySlot { return &c.device; }, choice("cpu | cuda | cuda-emu | auto"),
     "Where to compute; `auto` takes CUDA when it is there."},
    {"model.path", [](Config& c) -> KeySlot { return &c.model.path; }, any(),
     "Hugging Face folder of the model. Give this or `model.preset`."},
    {"model.preset", [](Config& c) -> KeySlot { return &c.model.preset; }, any(),
     "Name of a built-in shape with random weights. Give this or `model.path`."},
    {"model.init", [](Config& c) -> KeySlot { return &c.model.init; }, choice("auto | random"),
     "`auto` loads the weights of `model.path`; `random` ignores them."},
    {"model.override", [](Config& c) -> KeySlot { return &c.model.override_; }, any(),
     "Fields that replace those of the preset or config.json, such as `{layers: 2, dropout: 0.1}`."},
    {"data.train", [](Config& c) -> KeySlot { return &c.data.train; }, any(),
     "Files, folders or globs to train on. Required."},
    {"data.eval", [](Config& c) -> KeySlot { return &c.data.eval; }, any(),
     "Files, folders or globs held out for evaluation."},
    {"data.format", [](Config& c) -> KeySlot { return &c.data.format; }, choice("auto | text | jsonl | tokens"),
     "Format of the files; `auto` goes by the name."},
    {"data.tokenizer", [](Config& c) -> KeySlot { return &c.data.tokenizer; }, any(),
     "`auto` (of `model.path`, else bytes), `bytes`, or the path of a tokenizer.json."},
    {"data.cache_dir", [](Config& c) -> KeySlot { return &c.data.cache_dir; }, any(),
     "Folder of the tokenised cache."},
    {"data.seq_len", [](Config& c) -> KeySlot { return &c.data.seq_len; }, between(0, kMostTokens),
     "Tokens per sequence; 0 takes the positions of the model, at most 1024."},
    {"data.packing", [](Config& c) -> KeySlot { return &c.data.packing; }, any(),
     "Pack documents into full sequences; attention stays inside a document."},
    {"data.shuffle", [](Config& c) -> KeySlot { return &c.data.shuffle; }, any(),
     "Shuffle the sequences of every epoch."},
    {"data.on_error", [](Config& c) -> KeySlot { return &c.data.on_error; }, choice("stop | skip"),
     "What to do with a bad record."},
    {"data.workers", [](Config& c) -> KeySlot { return &c.data.workers; },
     or_word(between(0, kMostThreads), "auto", -1), "Loader threads per rank."},
    {"data.token_dtype", [](Config& c) -> KeySlot { return &c.data.token_dtype; }, choice("u16 | u32"),
     "Integer type of pre-tokenised files."},
    {"batch.global", [](Config& c) -> KeySlot { return &c.batch.global; }, between(0, kMostCount),
     "Sequences per optimizer step over all ranks; 0 means `micro` times the data ranks."},
    {"batch.micro", [](Config& c) -> KeySlot { return &c.batch.micro; }, between(1, 1e6),
     "Sequences per rank and forward pass."},
    {"parallel.tp", [](Config& c) -> KeySlot { return &c.parallel.tp; }, between(1, 4096),
     "Tensor-parallel ranks; the other ranks are data-parallel."},
    {"parallel.sequence", [](Config& c) -> KeySlot { return &c.parallel.sequence; }, choice("auto | on | off"),
     "Sequence parallelism of norms and residual; `auto` is on when `tp` > 1."},
    {"parallel.zero", [](Config& c) -> KeySlot { return &c.parallel.zero; }, between(0, 1),
     "1 shards the optimizer over data ranks, 0 keeps it whole on each."},
    {"parallel.bucket_mb", [](Config& c) -> KeySlot { return &c.parallel.bucket_mb; }, above(0),
     "Size of one gradient reduction in MiB."},
    {"precision.compute", [](Config& c) -> KeySlot { return &c.precision.compute; }, choice("fp32 | bf16 | fp16"),
     "Type of weights and activations in the arithmetic."},
    {"precision.reduce", [](Config& c) -> KeySlot { return &c.precision.reduce; }, choice("fp32 | bf16"),
     "Type of gradients on the wire."},
    {"precision.loss_scale", [](Config& c) -> KeySlot { return &c.precision.loss_scale; }, above(0),
     "First dynamic loss scale of fp16."},
    {"memory.recompute", [](Config& c) -> KeySlot { return &c.memory.recompute; }, choice("none | selective | full"),
     "Activations recomputed in backward instead of kept."},
    {"memory.limit_gb", [](Config& c) -> KeySlot { return &c.memory.limit_gb; }, at_least(0),
     "Memory a rank may use in GiB; 0 is what the machine has."},
    {"optimizer.name", [](Config& c) -> KeySlot { return &c.optimizer.name; }, choice("adamw"), "The optimizer."},
    {"optimizer.lr", [](Config& c) -> KeySlot { return &c.optimizer.lr; }, above(0), "Peak learning rate."},
    {"optimizer.betas", [](Config& c) -> KeySlot { return &c.optimizer.betas; }, below(at_least(0), 1),
     "Decay of the two moments."},
    {"optimizer.eps", [](Config& c) -> KeySlot { return &c.optimizer.eps; }, above(0),
     "Added to the root of the second moment."},
    {"optimizer.weight_decay", [](Config& c) -> KeySlot { return &c.optimizer.weight_decay; }, at_least(0),
     "Decoupled decay; norms and biases have none."},
    {"optimizer.clip", [](Config& c) -> KeySlot { return &c.optimizer.clip; }, at_least(0),
     "Largest global gradient norm; 0 is off."},
    {"schedule.kind", [](Config& c) -> KeySlot { return &c.schedule.kind; },
     choice("constant | linear | cosine | wsd"),
     "Shape of the learning rate after warm-up; `wsd` is warm-up, stable, decay."},
    {"schedule.warmup", [](Config& c) -> KeySlot { return &c.schedule.warmup; }, between(0, kMostCount),
     "Steps of linear warm-up."},
    {"schedule.min_ratio", [](Config& c) -> KeySlot { return &c.schedule.min_ratio; }, between(0, 1),
     "Last learning rate over the peak."},
    {"schedule.decay_fraction", [](Config& c) -> KeySlot { return &c.schedule.decay_fraction; }, between(0, 1),
     "`wsd`: share of the steps that decay."},
    {"steps", [](Config& c) -> KeySlot { return &c.steps; }, between(0, kMostCount),
     "Optimizer steps. Give this or `epochs`."},
    {"epochs", [](Config& c) -> KeySlot { return &c.epochs; }, between(0, 1e6),
     "Passes over the data. Give this or `steps`."},
    {"checkpoint.every", [](Config& c) -> KeySlot { return &c.checkpoint.every; }, between(0, kMostCount),
     "Steps between checkpoints; 0 saves only at the end and on a stop signal."},
    {"checkpoint.keep", [](Config& c) -> KeySlot { return &c.checkpoint.keep; }, between(0, 1e6),
     "Newest checkpoints kept; 0 keeps all."},
    {"checkpoint.at_end", [](Config& c) -> KeySlot { return &c.checkpoint.at_end; }, any(),
     "Save when training ends."},
    {"checkpoint.resume", [](Config& c) -> KeySlot { return &c.checkpoint.resume; }, any(),
     "`auto` (the newest complete one of this run), `never`, or a path."},
    {"eval.every", [](Config& c) -> KeySlot { return &c.eval.every; }, between(0, kMostCount),
     "Steps between evaluations; 0 evaluates only at the end."},
    {"eval.batches", [](Config& c) -> KeySlot { return &c.eval.batches; }, between(0, kMostCount),
     "Micro-batches per data rank and evaluation; 0 is all."},
    {"comm.transport", [](Config& c) -> KeySlot { return &c.comm.transport; }, choice("auto | shm | mpi | host"),
     "How ranks talk; `auto` is shared memory inside a host."},
    {"comm.check", [](Config& c) -> KeySlot { return &c.comm.check; }, any(),
     "Compare every collective's operation, count, type, root and number across ranks."},
    {"comm.timeout_s", [](Config& c) -> KeySlot { return &c.comm.timeout_s; }, between(1, 1e6),
     "Seconds a collective may wait for its peers."},
    {"comm.init_timeout_s", [](Config& c) -> KeySlot { return &c.comm.init_timeout_s; }, between(1, 1e6),
     "Seconds the ranks may take to join the job."},
    {"comm.checkpoint_timeout_s", [](Config& c) -> KeySlot { return &c.comm.checkpoint_timeout_s; }, between(1, 1e6),
     "Seconds a collective may wait for its peers while a checkpoint or a model is saved or loaded."},
    {"comm.progress", [](Config& c) -> KeySlot { return &c.comm.progress; }, choice("auto | on | off"),
     "Collectives go on while computing, on a thread of their own; `auto` where a host has a core to spare per "
     "rank."},
    {"telemetry.every", [](Config& c) -> KeySlot { return &c.telemetry.every; }, between(1, kMostCount),
     "Steps between two lines of progress."},
    {"telemetry.progress", [](Config& c) -> KeySlot { return &c.telemetry.progress; },
     choice("auto | bar | lines | off"), "Progress on the terminal; `auto` draws a bar on a terminal."},
    {"telemetry.peak_tflops", [](Config& c) -> KeySlot { return &c.telemetry.peak_tflops; }, at_least(0),
     "Peak of one device for MFU in TFLOP/s; 0 takes the known or measured one."},
    {"telemetry.prometheus", [](Config& c) -> KeySlot { return &c.telemetry.prometheus; }, any(),
     "Serve metrics to Prometheus: `off`, `PORT` on loopback, or `HOST:PORT`; one endpoint per host, port 0 is a "
     "free one."},
    {"telemetry.tensorboard", [](Config& c) -> KeySlot { return &c.telemetry.tensorboard; }, any(),
     "Write TensorBoard event files into `tensorboard/` of the run folder."},
    {"telemetry.monitor", [](Config& c) -> KeySlot { return &c.telemetry.monitor; }, any(),
     "Sample devices, host and process beside training into `monitor-<rank>.jsonl` of the run folder."},
    {"telemetry.monitor_every_s", [](Config& c) -> KeySlot { return &c.telemetry.monitor_every_s; },
     between(0.05, 3600), "Seconds between two samples of the monitor."},
    {"telemetry.links_script", [](Config& c) -> KeySlot { return &c.telemetry.links_script; }, any(),
     "JSON file that stands for the links of the machine, for tests; empty reads the machine."},
    {"telemetry.report", [](Config& c) -> KeySlot { return &c.telemetry.report; }, any(),
     "Write `report.html` into the run folder when a job of `launch` has ended."},
    {"sample.prompt", [](Config& c) -> KeySlot { return &c.sample.prompt; }, any(),
     "Prompt of a text generated when training ends; empty for none."},
    {"sample.tokens", [](Config& c) -> KeySlot { return &c.sample.tokens; }, between(1, 1e6), "Tokens to generate."},
    {"sample.temperature", [](Config& c) -> KeySlot { return &c.sample.temperature; }, at_least(0),
     "Softmax temperature; 0 is greedy."},
    {"sample.top_k", [](Config& c) -> KeySlot { return &c.sample.top_k; }, between(0, 1e9),
     "Keep the k likeliest tokens; 0 keeps all."},
    {"sample.top_p", [](Config& c) -> KeySlot { return &c.sample.top_p; }, up_to(above(0), 1),
     "Keep the likeliest tokens that sum to p."},
};

}  // namespace

std::span<const KeyRow> key_table() {
  return kRows;
}

const KeyRow* find_key(std::string_view key) {
  const auto found =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const KeyRow& row) { return row.key == key; });
  return found == std::end(kRows) ? nullptr : found;
}

bool is_section(std::string_view key) {
  const std::string prefix = std::string(key) + ".";
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [&](const KeyRow& row) { return row.key.starts_with(prefix); });
}

}  // namespace drivetrain
