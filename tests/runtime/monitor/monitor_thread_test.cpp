// The sampling thread and its file: starts and stops with its owner, survives what fails, reads back what it wrote.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "kernels/error.h"
#include "runtime/monitor/link_json.h"
#include "runtime/monitor/monitor.h"
#include "tests/runtime/monitor/made_up_files.h"

namespace drivetrain {
namespace {

class CountingDevices final : public DeviceSource {
 public:
  explicit CountingDevices(int fail_at = -1) : fail_at_(fail_at) {}
  std::vector<DeviceSample> sample() override {
    if (count_ == fail_at_) throw std::runtime_error("the driver is gone");
    DeviceSample device;
    device.pci = "0000:17:00.0";
    device.name = "a \"device\"";
    device.utilization = 10 * count_++;
    return {device};
  }

 private:
  int count_ = 0;
  int fail_at_;
};

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

MonitorSources sources_of(const MadeUpFiles& files, std::shared_ptr<DeviceSource> devices) {
  MonitorSources sources;
  sources.root = SystemRoot(files.root());
  sources.facts.host = "h1";
  sources.facts.cpu_limit = 1.5;
  sources.facts.environment = {{"NCCL_DEBUG", "\"\xff"}};
  sources.links = scripted_links(R"({"frames": [
    {"links": [{"kind": "tcp", "name": "eth0", "gb_per_s": 1.25}]},
    {"links": [{"kind": "tcp", "name": "eth0", "gb_per_s": 1.25}]},
    {"links": [{"kind": "tcp", "name": "eth0", "up": false}]}]})",
                                 "script");
  sources.devices = std::move(devices);
  return sources;
}

TEST(Monitor, WritesWhatItSaw) {
  const MadeUpFiles files;
  const auto file = files.root() / "monitor-00000.jsonl";
  files.write("proc/self/status", "Threads:\t12");
  files.write("proc/meminfo", "MemTotal: 1 kB");
  {
    const Monitor monitor(sources_of(files, std::make_shared<CountingDevices>()), {file, 0.001});
    ASSERT_TRUE(eventually([&] {
      const MonitorSample now = monitor.latest();
      return !now.devices.empty() && now.devices[0].utilization.value_or(0) >= 300;
    }));
  }
  const MonitorLog log = read_monitor(file);
  ASSERT_EQ(log.facts.size(), 1u);
  EXPECT_EQ(log.facts[0].host, "h1");
  EXPECT_EQ(log.facts[0].cpu_limit, 1.5);
  EXPECT_FALSE(log.facts[0].memory_limit);
  EXPECT_EQ(log.facts[0].environment.at("NCCL_DEBUG"), "\"\xef\xbf\xbd");  // not UTF-8: replaced
  ASSERT_GE(log.samples.size(), 31u);
  for (std::size_t i = 0; i < log.samples.size(); ++i) {
    const MonitorSample& s = log.samples[i];
    EXPECT_EQ(s.process.threads, 12);
    ASSERT_TRUE(s.host);
    EXPECT_EQ(s.host->memory_total, 1024);
    ASSERT_EQ(s.devices.size(), 1u);
    EXPECT_EQ(s.devices[0].name, "a \"device\"");
    EXPECT_EQ(s.devices[0].utilization, 10.0 * static_cast<double>(i));
    if (i == 0) continue;
    EXPECT_GT(s.clock_ns, log.samples[i - 1].clock_ns);
    EXPECT_GT(s.cost_ms, 0);
  }
  // Three looks: the second found the same links, now of a busy device.
  ASSERT_EQ(log.links.size(), 3u);
  EXPECT_FALSE(log.links[0].under_load);
  EXPECT_TRUE(log.links[1].under_load);
  EXPECT_TRUE(log.links[0].report.links[0].up);
  EXPECT_FALSE(log.links[2].report.links[0].up);
}

TEST(Monitor, StopsAtOnceAndTakesALastSample) {
  const MadeUpFiles files;
  const auto file = files.root() / "m.jsonl";
  const auto begin = std::chrono::steady_clock::now();
  {
    const Monitor monitor(sources_of(files, nullptr), {file, 3600});
    ASSERT_TRUE(eventually([&] { return monitor.latest().clock_ns > 0; }));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(read_monitor(file).samples.size(), 2u);
  { const Monitor again(sources_of(files, nullptr), {file, 3600}); }
  EXPECT_EQ(read_monitor(file).facts.size(), 2u);  // a resumed run goes on in the same file
}

TEST(Monitor, AnExceptionEndsTheMonitorNotTheProcess) {
  const MadeUpFiles files;
  const auto file = files.root() / "m.jsonl";
  {
    const Monitor monitor(sources_of(files, std::make_shared<CountingDevices>(3)), {file, 0.001});
    ASSERT_TRUE(eventually([&] { return read_monitor(file).samples.size() >= 3; }));
  }
  EXPECT_EQ(read_monitor(file).samples.size(), 3u);
}

TEST(Monitor, ARankWithoutTheHostSamplesItselfOnly) {
  const MadeUpFiles files;
  const auto file = files.root() / "m.jsonl";
  MonitorSources sources;
  sources.root = SystemRoot(files.root());
  { const Monitor monitor(std::move(sources), {file, 3600}); }
  const MonitorLog log = read_monitor(file);
  ASSERT_FALSE(log.samples.empty());
  EXPECT_FALSE(log.samples[0].host);
  EXPECT_TRUE(log.links.empty());
}

TEST(Monitor, NamesAFileThatCannotBeOpened) {
  try {
    const Monitor monitor(MonitorSources(), {"/nowhere/m.jsonl", 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find("/nowhere/m.jsonl"), std::string::npos);
  }
}

TEST(Monitor, ReadsThisMachine) {
  const MadeUpFiles files;
  const auto file = files.root() / "m.jsonl";
  {
    const Monitor monitor(machine_sources({0, 0, 1, 1}, true, ""), {file, 0.01});
    ASSERT_TRUE(eventually([&] { return monitor.latest().process.cpu_cores.has_value(); }));
  }
  const MonitorLog log = read_monitor(file);
  EXPECT_GT(log.facts.at(0).affinity_cpus, 0);
  EXPECT_GT(log.samples.back().host->memory_total.value_or(0), 0);
  EXPECT_FALSE(log.links.empty());
}

TEST(MonitorFile, HoldsNeighbours) {
  const MadeUpFiles files;
  MonitorSample sample;
  sample.neighbours = {{60, "a \"hog\"", 0.5, 1}, {61, "b", 0.25, 0}};
  files.write("m.jsonl", to_line(sample));
  const MonitorLog log = read_monitor(files.root() / "m.jsonl");
  ASSERT_EQ(log.samples.at(0).neighbours.size(), 2u);
  EXPECT_EQ(log.samples[0].neighbours[0].pid, 60);
  EXPECT_EQ(log.samples[0].neighbours[0].name, "a \"hog\"");
  EXPECT_EQ(log.samples[0].neighbours[0].cpu_cores, 0.5);
  EXPECT_EQ(log.samples[0].neighbours[0].cpu, 1);
}

TEST(MonitorFile, NamesTheLineThatIsWrong) {
  const MadeUpFiles files;
  const std::pair<const char*, const char*> bad[] = {{"{\"kind\": \"gossip\"}\n", ":1: unknown kind 'gossip'"},
                                                     {"not json\n", ":1: "},
                                                     {"{\"kind\": \"sample\"}\n", ":1: "}};
  for (const auto& [text, fault] : bad) {
    files.write("m.jsonl", text);
    try {
      read_monitor(files.root() / "m.jsonl");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(std::string(error.what()).find(fault), std::string::npos) << error.what();
    }
  }
  std::ofstream(files.root() / "m.jsonl") << "{\"kind\": \"sam";  // still being written
  EXPECT_TRUE(read_monitor(files.root() / "m.jsonl").samples.empty());
}

}  // namespace
}  // namespace drivetrain
