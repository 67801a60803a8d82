// An HTTP endpoint that answers GET /metrics in the Prometheus text format. The one door to prometheus-cpp.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/telemetry/listen_address.h"

namespace drivetrain {

struct Metric {
  struct Value {
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;
  };
  std::string name, help;
  bool counter = false;  // only grows; else a gauge
  std::vector<Value> values;
};

class MetricsServer {
 public:
  // `collect` is called by a thread of the server, for each request. Throws kPreflight when it cannot listen there.
  MetricsServer(const ListenAddress& where, std::function<std::vector<Metric>()> collect);
  ~MetricsServer();  // answers no more when it returns; takes up to two seconds, civetweb's poll
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::string url() const;  // "http://127.0.0.1:9400/metrics", with the port that was taken

 private:
  struct Parts;  // prometheus-cpp's
  std::string host_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace drivetrain
