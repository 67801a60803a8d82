#include "launcher/training.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>

#include "kernels/cpu/peak.h"
#include "launcher/checkpoint_model.h"
#include "launcher/plan_text.h"
#include "launcher/run_lock.h"
#include "launcher/terminal.h"
#include "launcher/text_generation.h"
#include "runtime/log.h"
#include "runtime/telemetry/run_telemetry.h"
#include "runtime/trainer.h"

namespace drivetrain {
namespace {

std::int64_t total_steps(const Config& config, const Loader& loader) {
  if (config.steps > 0) return config.steps;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(config.epochs * static_cast<double>(loader.steps_per_epoch()) - 1e-9)));
}

LossScaler loss_scaler(const Config& config) {
  constexpr std::int64_t kGoodSteps = 2000;  // Micikevicius et al. 2018, section 3.2
  return config.precision.compute == "fp16" ? LossScaler(config.precision.loss_scale, kGoodSteps) : LossScaler();
}

void write_resolved_config(const TrainingInput& input) {
  const auto file = input.config.run_folder() / "config.yaml";
  std::ofstream out(file, std::ios::trunc);
  out << input.resolved_config;
  out.close();
  if (!out) throw Error(ErrorKind::kIo, file.string() + ": cannot be written");
}

LedgerInfo ledger_info(const RankObjects& rank, double flops_per_token, const Peak& peak) {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {.world_rank = rank.mesh->world().rank(),
          .world_size = rank.mesh->world().size(),
          .dp = rank.setup.mesh.dp,
          .tp = rank.setup.mesh.tp,
          .threads = rank.threads,
          .flops_per_token = flops_per_token,
          .peak_flops = peak.flops.value_or(0),
          .steady_ns = steady_ns(),
          .unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count(),
          .compute = name(rank.setup.transformer.compute),
          .host = short_host_name(),
          .device = rank.device->description()};
}

void announce(const RankObjects& rank, const Dataset& data, std::int64_t steps, const Peak& peak) {
  log_info(rank.model->description());
  log_info("layout: dp " + std::to_string(rank.setup.mesh.dp) + " x tp " + std::to_string(rank.setup.mesh.tp) + ", " +
           name(rank.setup.transformer.compute) + ", " + rank.mesh->world().transport() + " collectives " +
           (rank.mesh->world().asynchronous() ? "with" : "without") + " a progress thread, " +
           rank.device->description());
  log_info("data: " + data.report());
  log_info("steps: " + std::to_string(steps) + " of " + std::to_string(rank.setup.global_batch * rank.setup.seq_len) +
           " tokens");
  log_info(peak.flops ? "peak: " + std::to_string(*peak.flops * 1e-9) + " GFLOP/s a rank (" + peak.source + ")"
                      : "peak: none (" + peak.source + "), so no MFU");
  log_info("memory of each rank, planned and allocated:\n" + memory_table(rank.plan));
}

std::vector<std::pair<std::string, std::string>> checkpoint_notes(const Config& config, const RankObjects& rank) {
  std::string tokenizer = config.data.tokenizer;
  if (tokenizer == "auto") tokenizer = !config.model.path.empty() ? config.model.path : "bytes";
  if (tokenizer != "bytes") tokenizer = std::filesystem::absolute(tokenizer).string();
  return {{"config.json", hf_config_json(rank.setup.model, "float32")}, {"tokenizer", tokenizer}};
}

void print_sample(const Config& config, RankObjects& rank) {
  if (config.sample.prompt.empty()) return;
  const auto prompt = rank.tokenizer->encode(config.sample.prompt);
  const SamplingOptions sampling{config.sample.temperature, config.sample.top_k, config.sample.top_p,
                                 config.run.seed};
  const Generation out = generate_tokens(*rank.model, *rank.arena, prompt, config.sample.tokens, sampling,
                                         rank.tokenizer->end_of_text(), [](std::int32_t) {});
  if (rank.mesh->world().rank() != 0) return;
  std::cout << "sample: " << config.sample.prompt << rank.tokenizer->decode(out.ids) << std::endl;
}

}  // namespace

Peak device_peak(const Config& config, const RankObjects& rank) {
  const DType compute = rank.setup.transformer.compute;
  if (config.telemetry.peak_tflops > 0) return {config.telemetry.peak_tflops * 1e12, "telemetry.peak_tflops"};
  if (rank.device->kind() != DeviceKind::kCpu) return table_peak(rank.device->description(), compute);
  return {cpu::measure_peak_flops(compute, rank.threads), "measured at start-up, register-only"};
}

std::shared_ptr<const Dataset> open_data(const Config& config, const RankObjects& rank,
                                         const std::vector<std::string>& files) {
  const Config::Data& d = config.data;
  return open_dataset({files, d.format, d.token_dtype, d.on_error, d.cache_dir, rank.setup.seq_len, d.packing,
                       rank.setup.model.vocab},
                      *rank.tokenizer);
}

std::unique_ptr<Loader> open_loader(const Config& config, const RankObjects& rank,
                                    std::shared_ptr<const Dataset> data) {
  return make_loader(std::move(data),
                     {rank.setup.global_batch, rank.setup.micro_batch, rank.setup.mesh.dp, rank.mesh->dp_rank(),
                      config.run.seed, config.data.shuffle, config.data.workers});
}

void train(const TrainingInput& input, RankObjects& rank, RankPhase& phase) {
  const Config& config = input.config;
  const int world_rank = rank.mesh->world().rank();
  const bool first = world_rank == 0;
  const std::filesystem::path folder = config.run_folder();
  std::filesystem::create_directories(folder / "ledger");
  std::optional<RunLock> lock;
  if (first) lock.emplace(folder);

  phase.name = "read data";
  const auto data = input.data ? input.data : open_data(config, rank, config.data.train);
  const auto eval_data = config.data.eval.empty() ? nullptr : open_data(config, rank, config.data.eval);
  const auto loader = open_loader(config, rank, data);
  const std::int64_t steps = total_steps(config, *loader);
  const Peak peak = input.peak ? *input.peak : device_peak(config, rank);

  phase.name = "build optimizer";
  GradReducer grads(rank.model->store(), *rank.mesh, *rank.device, rank.setup.wire);
  AdamW optimizer(*rank.device, rank.model->store(), *rank.mesh, rank.setup.optimizer);
  LossScaler scaler = loss_scaler(config);
  CheckpointFolder checkpoints(folder / "checkpoints");
  std::optional<Evaluator> evaluator;
  if (eval_data)
    evaluator.emplace(*rank.device, *rank.mesh, *eval_data, EvalOptions{rank.setup.micro_batch, config.eval.batches});
  std::optional<MetricsFile> metrics;
  std::optional<Progress> progress;
  if (first) {
    const int columns = console_columns();
    write_resolved_config(input);
    metrics.emplace(folder / "metrics.jsonl");
    progress.emplace(std::cout, progress_mode(config.telemetry.progress, columns), config.telemetry.every, columns);
    announce(rank, *data, steps, peak);
  }
  phase.name = "start telemetry";
  const ProcessPlace place = process_place();
  RunTelemetry telemetry(folder, config.telemetry, {world_rank, place.local_rank, place.local_size, rank.threads});

  TrainerOptions options;
  options.steps = steps;
  options.micro = rank.setup.micro_batch;
  options.seq = rank.setup.seq_len;
  options.micro_batches = rank.setup.global_batch / (rank.setup.micro_batch * rank.setup.mesh.dp);
  options.schedule = lr_schedule(config, steps);
  options.seed = config.run.seed;
  options.eval_every = config.eval.every;
  options.checkpoint_every = config.checkpoint.every;
  options.checkpoint_keep = config.checkpoint.keep;
  options.checkpoint_deadline = checkpoint_deadline(config);
  options.checkpoint_at_end = config.checkpoint.at_end;
  options.flops_per_token = flops_per_token(
      flops_shape(rank.setup.model, rank.setup.seq_len, rank.model->parameter_count()), FlopsConvention::kCausal);
  options.peak_flops_per_device = peak.flops;
  LedgerRecorder recorder(folder / "ledger", ledger_info(rank, options.flops_per_token, peak));
  options.notes = checkpoint_notes(config, rank);
  options.stop_requested = [&input] { return input.signals.requested(); };
  Trainer trainer({*rank.device, *rank.mesh, *rank.model, *rank.arena, *loader, grads, optimizer, scaler,
                   *rank.ledger, checkpoints, evaluator ? &*evaluator : nullptr, metrics ? &*metrics : nullptr,
                   progress ? &*progress : nullptr, &recorder, &telemetry},
                  options);

  const std::string& resume = config.checkpoint.resume;
  std::optional<std::filesystem::path> from;
  if (resume == "auto")
    from = checkpoints.newest();
  else if (resume != "never")
    from = find_checkpoint(resume);
  if (first && resume != "never") warn_of_incomplete(folder / "checkpoints", from.value_or(""));
  if (from) {
    phase.name = "load checkpoint";
    check_checkpoint_model(*from, rank.setup.model);
    trainer.resume(*from);
    rank.device->ops().weights_changed();
  } else {
    phase.name = "load model";
    const DeadlineScope deadline(rank.mesh->world(), checkpoint_deadline(config));
    initialise_weights(rank, config);
  }
  phase.name = "train";
  trainer.run();
  if (progress) progress->end_line();
  log_info("ledger: " + recorder.summary());
  phase.name = "sample";
  print_sample(config, rank);
}

}  // namespace drivetrain
