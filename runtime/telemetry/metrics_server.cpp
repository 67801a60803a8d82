#include "runtime/telemetry/metrics_server.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include "kernels/error.h"
#include "runtime/signals_held.h"

namespace drivetrain {
namespace {

class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(std::function<std::vector<Metric>()> collect) : collect_(std::move(collect)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> families;
    for (const Metric& metric : collect_()) {
      prometheus::MetricFamily family;
      family.name = metric.name;
      family.help = metric.help;
      family.type = metric.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
      for (const Metric::Value& value : metric.values) {
        prometheus::ClientMetric one;
        for (const auto& [name, text] : value.labels) one.label.push_back({name, text});
        (metric.counter ? one.counter.value : one.gauge.value) = value.value;
        family.metric.push_back(std::move(one));
      }
      families.push_back(std::move(family));
    }
    return families;
  }

 private:
  std::function<std::vector<Metric>()> collect_;
};

}  // namespace

struct MetricsServer::Parts {
  std::shared_ptr<Collector> collector;
  prometheus::Exposer exposer;
};

MetricsServer::MetricsServer(const ListenAddress& where, std::function<std::vector<Metric>()> collect)
    : host_(where.host) {
  const std::string address = where.host + ":" + std::to_string(where.port);
  constexpr std::size_t kThreads = 1;  // scrapes are rare
  const SignalsHeld held;
  try {
    parts_.reset(new Parts{std::make_shared<Collector>(std::move(collect)), prometheus::Exposer(address, kThreads)});
  } catch (const std::exception&) {  // says no more than that binding failed
    throw Error(ErrorKind::kPreflight,
                "telemetry.prometheus: cannot listen on " + address +
                    ": another program has the port, or the address is not of this machine; choose another, 0 for "
                    "any free port, or off");
  }
  parts_->exposer.RegisterCollectable(parts_->collector);
}

MetricsServer::~MetricsServer() = default;

std::string MetricsServer::url() const {
  return "http://" + host_ + ":" + std::to_string(parts_->exposer.GetListeningPorts().at(0)) + "/metrics";
}

}  // namespace drivetrain
