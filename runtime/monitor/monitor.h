// The monitor of one rank: a thread that samples process, host, devices and links beside training, writes them to
// monitor-<rank>.jsonl and keeps the newest for whoever asks. It never stops training: what fails is said once and left.
#pragma once
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "runtime/monitor/host_sampler.h"
#include "runtime/monitor/monitor_file.h"

namespace drivetrain {

struct MonitorSources {  // what it reads
  SystemRoot root;
  HostFacts facts;
  std::shared_ptr<LinkInspector> links;   // null: none, on all ranks of a host but one
  std::shared_ptr<DeviceSource> devices;  // null: none
};

// The sources of this machine. `whole_host`: links and devices as well; one rank of each host has them. Devices come from
// NVML where there is a driver, links from NVML, /sys, or the file `links_script` when it is not empty. Throws kIo and
// kConfig for that file only.
MonitorSources machine_sources(const RankPlace& place, bool whole_host, const std::string& links_script);

struct MonitorOptions {
  std::filesystem::path file;
  double every_s = 1;
};

class Monitor {
 public:
  // Starts sampling. Throws kIo when the file cannot be opened.
  Monitor(MonitorSources sources, const MonitorOptions& options);
  ~Monitor();  // takes a last sample and joins
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  MonitorSample latest() const;  // of any thread

 private:
  void run() noexcept;
  void take();
  void take_links(const MonitorSample& now);
  void write(const std::string& line);

  MonitorSources sources_;
  MonitorOptions options_;
  ProcessSampler process_;
  std::optional<HostSampler> host_;
  std::optional<NeighbourScan> neighbours_;
  std::ofstream out_;
  bool writable_ = true;
  std::int64_t taken_ = 0;
  std::string last_links_;             // as written
  std::set<std::string> said_faults_;  // of links
  double cost_ms_ = 0;                 // processor time of the last sample

  mutable std::mutex mutex_;  // guards latest_, stopping_
  std::condition_variable wake_;
  MonitorSample latest_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace drivetrain
