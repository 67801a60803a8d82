// What the endpoint says, over HTTP on a free port, and which rank says it.
#include "runtime/telemetry/run_telemetry.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "kernels/error.h"

namespace drivetrain {
namespace {

// The lines of GET /metrics that are no comments and not the server's own; empty when nobody answers.
std::string scrape(const std::string& url) {
  const int port = std::stoi(url.substr(url.rfind(':') + 1));
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    EXPECT_EQ(write(connection, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t count; (count = read(connection, buffer, sizeof buffer)) > 0;)
      answer.append(buffer, static_cast<std::size_t>(count));
  }
  close(connection);
  std::string lines;
  for (std::size_t at = answer.find("\r\n\r\n"); at < answer.size();) {
    const std::size_t end = std::min(answer.find('\n', at), answer.size());
    const std::string line = answer.substr(at, end - at);
    const bool ours = !line.empty() && line[0] != '#' && line[0] != '\r' && line.rfind("exposer_", 0) != 0;
    if (ours) lines += line + "\n";
    at = end + 1;
  }
  return lines;
}

const std::vector<Metric>& two_metrics() {
  static const std::vector<Metric> metrics{{"a_total", "A.", true, {{{{"rank", "1"}}, 3}, {{{"rank", "2"}}, 4}}},
                                           {"b", "B.", false, {{{}, 0.5}}}};
  return metrics;
}

TEST(MetricsServer, AnswersWithWhatIsCollected) {
  int calls = 0;
  std::string url;
  {
    const MetricsServer server({"127.0.0.1", 0}, [&] {
      ++calls;
      return two_metrics();
    });
    url = server.url();
    EXPECT_EQ(scrape(url), "a_total{rank=\"1\"} 3\na_total{rank=\"2\"} 4\nb 0.5\n");
    scrape(url);
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(scrape(url), "");  // gone with the object
}

TEST(MetricsServer, NamesAPortThatIsTaken) {
  const MetricsServer first({"127.0.0.1", 0}, two_metrics);
  const std::string url = first.url();
  const int port = std::stoi(url.substr(url.rfind(':') + 1));
  try {
    const MetricsServer second({"127.0.0.1", port}, two_metrics);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPreflight);
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(port)), std::string::npos);
  }
}

double value_of(const std::vector<Metric>& metrics, const std::string& name,
                const std::vector<std::pair<std::string, std::string>>& labels = {}) {
  for (const Metric& metric : metrics)
    for (const Metric::Value& value : metric.values)
      if (metric.name == name && value.labels == labels) return value.value;
  ADD_FAILURE() << name;
  return 0;
}

bool has(const std::vector<Metric>& metrics, const std::string& name) {
  return std::any_of(metrics.begin(), metrics.end(), [&](const Metric& metric) { return metric.name == name; });
}

TEST(RunMetrics, SayTheNewestStep) {
  RunMetrics metrics(2);
  EXPECT_TRUE(metrics.collect().empty());
  MetricsRow row;
  row.step = 7;
  row.loss = 2.5;
  row.tokens = 700;
  row.tokens_per_s = 50;
  row.step_ms = 200;
  row.eval_loss = 3;
  metrics.set_row(row);
  row.step = 8;
  row.eval_loss.reset();
  row.mfu = 0.4;
  EXPECT_FALSE(has(metrics.collect(), "drivetrain_mfu"));
  metrics.set_row(row);
  const auto now = metrics.collect();
  EXPECT_EQ(value_of(now, "drivetrain_step"), 8);
  EXPECT_EQ(value_of(now, "drivetrain_loss"), 2.5);
  EXPECT_EQ(value_of(now, "drivetrain_eval_loss"), 3);  // stays until the next evaluation
  EXPECT_EQ(value_of(now, "drivetrain_tokens_total"), 700);
  EXPECT_EQ(value_of(now, "drivetrain_step_seconds"), 0.2);
  EXPECT_EQ(value_of(now, "drivetrain_mfu"), 0.4);
}

TEST(RunMetrics, SayWhereTheTimeWentAndWhoIsWaitedFor) {
  RunMetrics metrics(2);
  StepRecord record;
  record.class_ns[static_cast<std::size_t>(TimeClass::kDpWait)] = 40'000'000;
  AxisTotals& dp = record.axes[static_cast<std::size_t>(CommAxis::kDp)];
  dp.culprit = 3;
  dp.culprit_ns = 30'000'000;
  metrics.set_record(record);
  metrics.set_record(record);
  dp.culprit = 1;
  metrics.set_record(record);
  const auto now = metrics.collect();
  EXPECT_EQ(value_of(now, "drivetrain_step_class_seconds", {{"class", "dp_wait"}, {"rank", "2"}}), 0.04);
  EXPECT_EQ(value_of(now, "drivetrain_step_class_seconds", {{"class", "forward"}, {"rank", "2"}}), 0);
  const auto waited = [&](const char* who) {
    return value_of(now, "drivetrain_wait_seconds_total", {{"axis", "dp"}, {"culprit", who}, {"rank", "2"}});
  };
  EXPECT_DOUBLE_EQ(waited("3"), 0.06);
  EXPECT_DOUBLE_EQ(waited("1"), 0.03);
}

TEST(SampleMetrics, CarryTheDevice) {
  MonitorSample sample;
  sample.process.threads = 9;
  sample.devices.resize(2);
  sample.devices[1].pci = "0000:17:00.0";
  sample.devices[1].name = "H200";
  sample.devices[1].power_w = 91;
  const auto metrics = sample_metrics(sample, 4);
  ASSERT_EQ(metrics.size(), 2u);  // what is unknown is left out
  EXPECT_EQ(value_of(metrics, "drivetrain_process_threads", {{"rank", "4"}}), 9);
  EXPECT_EQ(value_of(metrics, "drivetrain_device_power_w", {{"pci", "0000:17:00.0"}, {"name", "H200"}}), 91);
}

}  // namespace
}  // namespace drivetrain
