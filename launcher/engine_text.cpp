#include "launcher/engine_text.h"

#include <cstdlib>
#include <regex>
#include <utility>

namespace drivetrain {
namespace {

using Kind = EngineVerdict::Kind;
constexpr std::size_t kLongestPartial_bytes = 8192;
constexpr std::size_t kLongestBlock_bytes = 16384;

// Open MPI frames its messages in lines of 74 dashes.
bool is_frame(const std::string& line) {
  return line.size() == 74 && line.find_first_not_of('-') == std::string::npos;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// First group of the pattern, "" when absent. Blocks are short and few.
std::string find(const std::string& text, const char* pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

int number(const std::string& text, int otherwise) {
  return text.empty() ? otherwise : std::atoi(text.c_str());
}

std::optional<EngineVerdict> rank_verdict(const std::string& block) {
  if (has(block, "processes exited with non-zero status")) {
    const int code = number(find(block, R"(Exit code:\s+(\d+))"), 1);
    return EngineVerdict{Kind::kRankFailed, number(find(block, R"(Process name: \[\[\d+,\d+\],(\d+)\])"), -1), code,
                         "", "exit " + std::to_string(code)};
  }
  if (has(block, "exited on signal")) {
    const int signal = number(find(block, R"(exited on signal (\d+))"), 9);
    const std::string name = find(block, R"(exited on signal \d+( \([^)]*\)))");
    return EngineVerdict{Kind::kRankFailed, number(find(block, R"(process rank (\d+))"), -1), 128 + signal,
                         find(block, R"(on node (\S+))"), "killed by signal " + std::to_string(signal) + name};
  }
  if (has(block, "MPI_ABORT was invoked")) {
    const int code = number(find(block, R"(errorcode\s+(-?\d+))"), 1) & 0xff;
    return EngineVerdict{Kind::kRankFailed, number(find(block, R"(on rank (\d+))"), -1), code, "",
                         "MPI_Abort with " + std::to_string(code)};
  }
  if (has(block, "exiting improperly")) {
    return EngineVerdict{Kind::kRankFailed, number(find(block, R"(process rank (\d+))"), -1), 1,
                         find(block, R"(node (\S+))"), "left without MPI_Finalize"};
  }
  return std::nullopt;
}

std::optional<EngineVerdict> job_verdict(const std::string& block) {
  const auto launch = [](const std::string& reason) { return EngineVerdict{Kind::kLaunchFailed, -1, 0, "", reason}; };
  if (has(block, "could not access\nor execute an executable") || has(block, "could not find an\nexecutable")) {
    return launch("the program cannot be run: " + find(block, R"(Executable: (.*))") + " on " +
                  find(block, R"(Node: (\S+))"));
  }
  if (has(block, "not enough slots")) return launch("Open MPI has too few slots for the ranks");
  if (has(block, "reliably start one or more daemons")) return launch("a host could not be reached or has no orted");
  if (has(block, "attempt to run as root")) return launch("mpirun refuses to run as root");
  if (has(block, "lost communication with a remote daemon") || has(block, "daemon has lost communication")) {
    const std::string host = find(block, R"(Remote daemon:.* on node (\S+))");
    return EngineVerdict{Kind::kNodeLost, -1, 0, host, "its daemon does not answer"};
  }
  return std::nullopt;
}

// Words of mpirun outside a frame that tell the user nothing new.
bool is_chatter(const std::string& line) {
  return line.starts_with("mpirun: Forwarding signal") || has(line, "sent help message help-") ||
         (has(line, "ORTE_ERROR_LOG") && has(line, "show_help.c")) || line.starts_with("[warn] Epoll ") ||
         has(line, "Set MCA parameter \"orte_base_help_aggregate\"");
}

}  // namespace

std::string EngineText::feed(const std::string& bytes) {
  std::string console;
  partial_ += bytes;
  for (std::size_t end; (end = partial_.find('\n')) != std::string::npos;) {
    console += take_line(partial_.substr(0, end));
    partial_.erase(0, end + 1);
  }
  if (partial_.size() > kLongestPartial_bytes) {
    if (in_block_) console += close_block();
    console += std::exchange(partial_, "");
  }
  return console;
}

std::string EngineText::finish() {
  std::string console;
  if (!partial_.empty()) console = take_line(std::exchange(partial_, ""));
  return console + (in_block_ ? close_block() : "");
}

std::string EngineText::take_line(const std::string& line) {
  if (is_frame(line)) {
    if (in_block_) return close_block();
    in_block_ = true;
    return "";
  }
  if (in_block_) {
    block_ += line + "\n";
    return block_.size() > kLongestBlock_bytes ? close_block() : "";
  }
  if (is_chatter(line)) return "";
  if (!line.empty()) last_lines_.push_back(line);
  if (last_lines_.size() > 5) last_lines_.erase(last_lines_.begin());
  return line + "\n";
}

// A message we understand becomes a verdict and is not repeated; others are passed on as they are.
std::string EngineText::close_block() {
  in_block_ = false;
  const std::string block = std::exchange(block_, "");
  if (has(block, "Primary job  terminated normally")) return "";
  std::optional<EngineVerdict> found = rank_verdict(block);
  if (!found) found = job_verdict(block);
  if (!found) {
    last_lines_.push_back(block.substr(0, block.find('\n')));
    return block;
  }
  if (!verdict_) verdict_ = found;
  return "";
}

}  // namespace drivetrain
