#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "kernels/error.h"
#include "runtime/monitor/link_json.h"
#include "runtime/monitor/monitor.h"
#include "runtime/monitor/nvml.h"
#include "runtime/monitor/sysfs_links.h"

namespace drivetrain {
namespace {

constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";  // comes with NVIDIA's driver

// What NVML knows of its devices, and the rest of the machine from /sys.
class MachineLinks final : public LinkInspector {
 public:
  MachineLinks(std::shared_ptr<Nvml> nvml, std::unique_ptr<LinkInspector> system)
      : nvml_(std::move(nvml)), system_(std::move(system)) {}

  LinkReport inspect() override {
    LinkReport report = nvml_ ? nvml_->inspect() : LinkReport();
    const std::size_t known = report.links.size();
    for (Link& link : system_->inspect().links) {
      const auto same = [&](const Link& other) { return other.name == link.name; };
      if (std::none_of(report.links.begin(), report.links.begin() + static_cast<std::ptrdiff_t>(known), same))
        report.links.push_back(std::move(link));
    }
    return report;
  }

 private:
  std::shared_ptr<Nvml> nvml_;
  std::unique_ptr<LinkInspector> system_;
};

std::unique_ptr<LinkInspector> links_of_script(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw Error(ErrorKind::kIo, "telemetry.links_script: cannot read " + file);
  return scripted_links(text.str(), file);
}

}  // namespace

MonitorSources machine_sources(const RankPlace& place, bool whole_host, const std::string& links_script) {
  MonitorSources sources;
  sources.facts = gather_host_facts(sources.root, place, environ);
  if (!whole_host) return sources;
  std::string why;  // no driver is the usual case and nothing to say
  const std::shared_ptr<Nvml> nvml = Nvml::open(kNvmlLibrary, std::getenv("CUDA_VISIBLE_DEVICES"), sources.root, why);
  sources.devices = nvml;
  if (links_script.empty())
    sources.links = std::make_shared<MachineLinks>(nvml, sysfs_links(sources.root));
  else
    sources.links = links_of_script(links_script);
  return sources;
}

}  // namespace drivetrain
