// Bad and good configurations: every fault named at once, with its line, its range and the nearest key.
#include "runtime/config/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr const char* kGood =
    "run: {name: t1}\n"
    "model: {preset: gpt2-124m}\n"
    "data: {train: [a.txt]}\n"
    "steps: 10\n";

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("drivetrain_config_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    file_ = folder_ / "t.yaml";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(file_, std::ios::binary) << text; }
  Config load(const std::string& text, const std::vector<ConfigOverride>& overrides = {}) {
    write(text);
    return load_config(file_, overrides);
  }
  // The message without the folder; "" when it loads.
  std::string fault(const std::string& text, const std::vector<ConfigOverride>& overrides = {}) {
    write(text);
    return fault_of_file(file_, overrides);
  }
  std::string fault_of_file(const std::filesystem::path& file, const std::vector<ConfigOverride>& overrides = {}) {
    try {
      load_config(file, overrides);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 64);
      std::string message = error.what();
      const std::string prefix = folder_.string() + "/";
      for (std::size_t at; (at = message.find(prefix)) != std::string::npos;) message.erase(at, prefix.size());
      return message;
    }
    return "";
  }

  std::filesystem::path folder_, file_;
};

std::string one(const std::string& fault) {
  return "the configuration has 1 fault:\n  " + fault;
}

TEST_F(ConfigTest, ReadsTheDocumentedExample) {
  const Config c = load(
      "run:        {name: smollm2-alpaca, dir: runs, seed: 18446744073709551615}\n"
      "device:     auto                    # a comment\n"
      "model:      {path: models/SmolLM2-135M, override: {layers: 2, dropout: 0.1}}\n"
      "data:       {train: [train.jsonl], eval: e.jsonl, format: jsonl, seq_len: 1024, packing: true, workers: "
      "auto}\n"
      "batch:      {global: 64, micro: 2}\n"
      "parallel:   {tp: 1, sequence: auto, zero: 1}\n"
      "precision:  {compute: bf16, reduce: fp32}\n"
      "memory:     {recompute: selective}\n"
      "optimizer:  {name: adamw, lr: 2.0e-4, betas: [0.9, 0.95], eps: 1.0e-8, weight_decay: 0.1, clip: 1.0}\n"
      "schedule:   {kind: cosine, warmup: 100, min_ratio: 0.1}\n"
      "steps:      1000\n"
      "checkpoint: {every: 200, keep: 3}\n"
      "eval:       {every: 100}\n"
      "comm:       {transport: auto, check: true, timeout_s: 300}\n"
      "telemetry:  {every: 10, prometheus: off, tensorboard: on}\n");
  EXPECT_EQ(c.run.seed, 18446744073709551615u);
  EXPECT_EQ(c.run_folder(), "runs/smollm2-alpaca");
  EXPECT_EQ(c.model.override_, (std::map<std::string, std::string>{{"layers", "2"}, {"dropout", "0.1"}}));
  EXPECT_EQ(c.data.eval, std::vector<std::string>{"e.jsonl"});
  EXPECT_EQ(c.data.workers, -1);
  EXPECT_EQ(c.optimizer.lr, 2e-4);
  EXPECT_EQ(c.optimizer.betas, (std::vector<double>{0.9, 0.95}));
  EXPECT_EQ(c.steps, 1000);
  EXPECT_TRUE(c.telemetry.tensorboard);
  EXPECT_EQ(c.telemetry.prometheus, "off");
}

TEST_F(ConfigTest, AcceptsUsualSpellings) {
  EXPECT_EQ(load(std::string("\xef\xbb\xbf") + kGood).steps, 10);  // byte order mark
  EXPECT_EQ(load("run: {name: t1}\r\nmodel: {preset: a}\r\ndata: {train: a}\r\nsteps: 10\r\n").steps, 10);
  EXPECT_EQ(load(std::string(kGood) + "eval:\n").eval.every, 0);  // an empty section
  EXPECT_EQ(load(std::string("---\n") + kGood).steps, 10);
  for (const char* text : {"1e-3", "0.001", ".001", "1.0E-3", "+1e-3"}) {
    EXPECT_EQ(load(kGood, {{"optimizer.lr", text}}).optimizer.lr, 1e-3) << text;
  }
}

TEST_F(ConfigTest, ReportsEveryFaultAtOnce) {
  EXPECT_EQ(
      fault("run: {name: ../x}\n"
            "modle: {preset: gpt2-124m}\n"
            "data: {train: [a.txt], formatt: jsonl}\n"
            "batch: {global: 9, micro: 2}\n"
            "optimizer:\n"
            "  lr: fast\n"
            "  betas: [0.9, 1.0]\n"
            "steps: 10\n"
            "schedule: {warmup: 11, kind: cosin}\n"),
      "the configuration has 8 faults:\n"
      "  t.yaml:2: modle: unknown key; did you mean 'model'?\n"
      "  t.yaml:3: data.formatt: unknown key; did you mean 'data.format'?\n"
      "  t.yaml:6: optimizer.lr: 'fast' is not a number (> 0)\n"
      "  t.yaml:7: optimizer.betas: item 2 '1.0' is outside the allowed range (>= 0 and < 1)\n"
      "  t.yaml:9: schedule.kind: 'cosin' is not one of constant | linear | cosine | wsd; did you mean 'cosine'?\n"
      "  t.yaml:1: run.name: '../x' is not a folder name: letters, digits, '.', '_', '-', not starting with '.' "
      "or '-', at most 200\n"
      "  t.yaml:9: schedule.warmup: 11 is more than steps, 10; set schedule.warmup to at most that\n"
      "  t.yaml:4: batch.global: 9 is not a multiple of batch.micro, 2");
}

TEST_F(ConfigTest, NamesTheSectionOfAMisplacedKey) {
  EXPECT_EQ(fault(std::string(kGood) + "lr: 1e-3\n"), one("t.yaml:5: lr: unknown key; did you mean 'optimizer.lr'?"));
  EXPECT_EQ(fault(std::string(kGood) + "optimizer.lr: 1e-3\n"),
            one("t.yaml:5: optimizer.lr: a key of the file has no dot; nest it, as in optimizer: {lr: ...}"));
  EXPECT_EQ(fault(std::string(kGood) + "zzzzzzzz: 1\n"), one("t.yaml:5: zzzzzzzz: unknown key"));
}

struct BadValue {
  const char *key, *value, *fault;
};

TEST_F(ConfigTest, RefusesWrongValues) {
  const BadValue bad[] = {
      {"optimizer.lr", "yes", "'yes' is not a number (> 0)"},
      {"optimizer.lr", "\"1e-3\"", "is the text \"1e-3\", wants a number (> 0)"},
      {"optimizer.lr", "[1e-3]", "is a list, wants a number (> 0)"},
      {"optimizer.lr", "{a: 1}", "is a map, wants a number (> 0)"},
      {"optimizer.lr", "~", "is nothing, wants a number (> 0)"},
      {"optimizer.lr", "0", "'0' is outside the allowed range (> 0)"},
      {"optimizer.lr", "-1e-3", "'-1e-3' is outside the allowed range (> 0)"},
      {"optimizer.lr", "nan", "'nan' is not a number (> 0)"},
      {"optimizer.lr", ".inf", "'.inf' is not a number (> 0)"},
      {"optimizer.lr", "inf", "'inf' is not a number (> 0)"},
      {"optimizer.lr", "1e400", "'1e400' is too large or too small to hold (> 0)"},
      {"optimizer.lr", "2e-4x", "'2e-4x' is not a number (> 0)"},
      {"optimizer.lr", "1,5", "'1,5' is not a number (> 0)"},
      {"telemetry.prometheus", "on",
       "'on' is not off, PORT or HOST:PORT with a numeric address and a port up to 65535, such as 9400 or "
       "0.0.0.0:9400"},
      {"telemetry.monitor_every_s", "0", "'0' is outside the allowed range (>= 0.05 and <= 3600)"},
      {"steps", "1_000", "'1_000' is not a whole number (>= 0 and <= 1e+12)"},
      {"steps", "1e3", "'1e3' is not a whole number (>= 0 and <= 1e+12)"},
      {"steps", "10.0", "'10.0' is not a whole number (>= 0 and <= 1e+12)"},
      {"steps", "010", "'010' is not a whole number (>= 0 and <= 1e+12)"},
      {"steps", "0x10", "'0x10' is not a whole number (>= 0 and <= 1e+12)"},
      {"steps", "-5", "'-5' is outside the allowed range (>= 0 and <= 1e+12)"},
      {"steps", "99999999999999999999",
       "'99999999999999999999' is too large or too small to hold (>= 0 and <= 1e+12)"},
      {"run.seed", "-1", "'-1' is not a whole number"},
      {"run.seed", "18446744073709551616", "'18446744073709551616' is too large or too small to hold"},
      {"parallel.tp", "0", "'0' is outside the allowed range (>= 1 and <= 4096)"},
      {"parallel.tp", "4294967297", "'4294967297' is too large or too small to hold (>= 1 and <= 4096)"},
      {"parallel.zero", "2", "'2' is outside the allowed range (>= 0 and <= 1)"},
      {"data.workers", "many", "'many' is not a whole number (>= 0 and <= 4096 | auto)"},
      {"data.packing", "1", "is '1', wants on | off"},
      {"data.packing", "\"on\"", "is the text \"on\", wants on | off"},
      {"data.train", "{a: b}", "is a map, wants a list of texts such as [a.txt, b.txt]"},
      {"data.train", "[a.txt, [b.txt]]", "item 2 is a list, wants text (\"\" is the empty text)"},
      {"data.train", "[\"\"]", "holds an empty text; wants names of files"},
      {"optimizer.betas", "0.9", "is '0.9', wants a list of 2 numbers (each >= 0 and < 1)"},
      {"optimizer.betas", "[0.9]", "is a list of 1, wants a list of 2 numbers (each >= 0 and < 1)"},
      {"optimizer.betas", "[0.9, x]", "item 2 'x' is not a number (>= 0 and < 1)"},
      {"model.override", "[layers]", "is a list, wants a map such as {layers: 2}"},
      {"model.override", "{layers: [2]}", "layers is a list, wants text (\"\" is the empty text)"},
      {"device", "gpu", "'gpu' is not one of cpu | cuda | cuda-emu | auto; did you mean 'cpu'?"},
      {"run.name", "\"\"",
       "'' is not a folder name: letters, digits, '.', '_', '-', not starting with '.' or '-', at most 200"},
  };
  for (const BadValue& row : bad) {
    const std::string option = std::string("--set ") + row.key + "=" + row.value;
    EXPECT_EQ(fault(kGood, {{row.key, row.value}}), one(option + ": " + row.key + ": " + row.fault));
  }
}

TEST_F(ConfigTest, RefusesInconsistentKeys) {
  const std::string head = "run: {name: t1}\nmodel: {preset: a}\ndata: {train: [a]}\n";
  EXPECT_EQ(fault(head), one("t.yaml: steps: give steps or epochs, above 0"));
  EXPECT_EQ(fault(head + "steps: 0\n"), one("t.yaml:4: steps: give steps or epochs, above 0"));
  EXPECT_EQ(fault(head + "steps: 1\nepochs: 2\n"),
            one("t.yaml:5: epochs: steps and epochs are both given; give one"));
  EXPECT_EQ(fault("model: {preset: a, path: b}\ndata: {train: [a]}\nsteps: 1\n"),
            one("t.yaml:1: model.preset: 'a' and model.path 'b' are both given; give one"));
  EXPECT_EQ(fault("data: {train: [a]}\nsteps: 1\n"), one("t.yaml: model: give model.path or model.preset"));
  EXPECT_EQ(fault("model: {preset: a}\nsteps: 1\n"),
            one("t.yaml: data.train: is missing; give at least one file, folder or glob"));
  EXPECT_EQ(fault(head + "steps: 1\neval: {every: 3}\n"),
            one("t.yaml:5: eval.every: 3 needs data.eval, which is empty"));
  EXPECT_EQ(fault(head + "steps: 10\nschedule: {kind: wsd, warmup: 9}\n"),
            one("t.yaml: schedule.decay_fraction: warm-up and decay together are longer than 10 steps"));
}

TEST_F(ConfigTest, RefusesWhatIsNotOneYamlMap) {
  EXPECT_EQ(fault(""), one("t.yaml: is empty"));
  EXPECT_EQ(fault("# nothing\n"), one("t.yaml: is empty"));
  EXPECT_EQ(fault("hello\n"), one("t.yaml:1: wants 'key: value' lines here"));
  EXPECT_EQ(fault("- a\n- b\n"), one("t.yaml:1: wants 'key: value' lines here"));
  EXPECT_EQ(fault(std::string(kGood) + "eval: 3\n"), one("t.yaml:5: eval: wants 'key: value' lines here"));
  EXPECT_EQ(fault("steps: 1\n\tx: 2\n"), one("t.yaml:2: a tab in the indentation; YAML wants spaces"));
  EXPECT_EQ(fault(std::string("a: \0b\n", 6)), one("t.yaml:1: a control character (byte 0); is this a text file?"));
  EXPECT_EQ(fault(std::string(kGood) + "steps: 11\n"), one("t.yaml:5: steps: given twice, first in line 4"));
  EXPECT_EQ(fault(std::string(kGood) + "eval: {batches: 1,\n  batches: 2}\n"),
            one("t.yaml:6: eval.batches: given twice, first in line 5"));
  EXPECT_NE(fault("run: {name: a\nsteps: 3\n").find("t.yaml:"), std::string::npos);
  EXPECT_NE(fault("a: b: c\n").find("t.yaml:1: not valid YAML: "), std::string::npos);
  EXPECT_NE(fault(std::string(kGood) + "---\nsteps: 3\n").find("a second document"), std::string::npos);
  EXPECT_NE(fault("a: " + std::string(100, '[') + std::string(100, ']') + "\n").find("nested deeper"),
            std::string::npos);
  EXPECT_NE(fault("a: " + std::string(5000, '[') + "\n"), "");
  EXPECT_NE(fault("a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
                  "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n"
                  "e: &e [*d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e]\n")
                .find("too many aliases"),
            std::string::npos);
}

TEST_F(ConfigTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(fault_of_file(folder_ / "absent.yaml"), "absent.yaml: no such file; the configuration is a YAML file");
  std::filesystem::create_directory(folder_ / "d");
  EXPECT_EQ(fault_of_file(folder_ / "d"), "d: is a folder; name the YAML file");
  write(std::string(std::size_t{2} << 20, '#'));
  EXPECT_EQ(fault_of_file(file_), "t.yaml: is larger than 1 MiB; is it a configuration?");
}

TEST_F(ConfigTest, OverridesWinAndFaultsNameTheOption) {
  EXPECT_EQ(load(kGood, {{"steps", "20"}, {"model.override.layers", "2"}, {"data.train", "[x, y]"}}).steps, 20);
  EXPECT_EQ(load(kGood, {{"steps", "20"}, {"steps", "30"}}).steps, 30);
  EXPECT_EQ(load(kGood, {{"model.override.layers", "2"}, {"model.override.dim", "8"}}).model.override_.size(), 2u);
  EXPECT_EQ(load(kGood, {{"optimizer", "{lr: 0.5}"}}).optimizer.lr, 0.5);
  EXPECT_EQ(load(kGood, {{"sample.prompt", ""}}).sample.prompt, "");
  EXPECT_EQ(fault(kGood, {{"optimiser.lr", "1"}}),
            one("--set optimiser.lr=1: optimiser.lr: unknown key; did you mean 'optimizer.lr'?"));
  EXPECT_EQ(fault(kGood, {{"steps.x", "1"}}), one("--set steps.x=1: steps.x: unknown key; did you mean 'steps'?"));
  EXPECT_EQ(fault(kGood, {{"", "1"}}), one("--set =1: : unknown key"));
}

TEST_F(ConfigTest, OverrideDisplacesItsCounterpart) {
  const Config c = load(kGood, {{"epochs", "2"}, {"model.path", "m"}});
  EXPECT_EQ(c.steps, 0);
  EXPECT_EQ(c.epochs, 2);
  EXPECT_EQ(c.model.preset, "");
  EXPECT_EQ(c.model.path, "m");
  EXPECT_EQ(fault(kGood, {{"epochs", "2"}, {"steps", "3"}}),
            one("--set epochs=2: epochs: steps and epochs are both given; give one"));
}

TEST_F(ConfigTest, ResolvedYamlLoadsBackToTheSame) {
  const std::vector<ConfigOverride> overrides = {{"optimizer.lr", "1e-3"},
                                                 {"sample.prompt", "\"say: \\\"hi\\\"\\n # x\""},
                                                 {"model.override", "{layers: 2}"},
                                                 {"run.name", "null1"},
                                                 {"data.train", "['a b.txt', '*.txt']"}};
  write(kGood);
  const std::string first = resolved_yaml(file_, overrides);
  EXPECT_NE(first.find("lr: 0.001 "), std::string::npos);
  EXPECT_NE(first.find("# --set optimizer.lr=1e-3\n"), std::string::npos);
  EXPECT_NE(first.find("t.yaml:4\n"), std::string::npos);
  EXPECT_NE(first.find("# default\n"), std::string::npos);
  const Config c = load(first);
  EXPECT_EQ(c.sample.prompt, "say: \"hi\"\n # x");
  EXPECT_EQ(c.data.train, (std::vector<std::string>{"a b.txt", "*.txt"}));
  const auto without_origin = [](const std::string& text) {
    std::string values;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      values += line.substr(0, line.rfind("  # ")) + "\n";
      at = end + 1;
    }
    return values;
  };
  EXPECT_EQ(without_origin(resolved_yaml(file_, {})), without_origin(first));
}

TEST_F(ConfigTest, EveryKeyIsDocumentedAndItsDefaultLoads) {
  std::vector<ConfigOverride> defaults;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_FALSE(key.help.empty()) << key.key;
    const bool displacing = key.key == "steps" || key.key == "epochs" || key.key.starts_with("model.p");
    if (!displacing && key.key != "data.train") defaults.push_back({key.key, key.default_value});
  }
  EXPECT_GT(defaults.size(), 40u);
  const Config c = load(kGood, defaults);
  EXPECT_EQ(c.optimizer.lr, Config().optimizer.lr);
  EXPECT_EQ(c.run.name, "run");
}

TEST_F(ConfigTest, ChecksTheRanks) {
  Config c = load(kGood, {{"parallel.tp", "2"}, {"batch.global", "12"}, {"batch.micro", "2"}});
  check_for_ranks(c, 2);
  check_for_ranks(c, 12);
  const auto message = [&](int ranks) -> std::string {
    try {
      check_for_ranks(c, ranks);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      message(3),
      "the configuration does not fit 3 ranks:\n  parallel.tp: 2 does not divide 3 ranks; start a multiple of 2 "
      "or change parallel.tp");
  EXPECT_EQ(message(8),
            "the configuration does not fit 8 ranks:\n  batch.global: 12 is not a multiple of 8 (batch.micro 2 x 4 "
            "data ranks)");
  c.batch.global = 0;
  EXPECT_EQ(message(8), "");
}

}  // namespace
}  // namespace drivetrain
