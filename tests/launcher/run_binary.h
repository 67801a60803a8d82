// Runs the built `drivetrain` in a scratch folder, as a user would. Test helper.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace drivetrain {

struct Ran {
  int code = -1;
  std::string output;  // both streams
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

inline Ran run_shell(const std::string& command) {
  Ran ran;
  FILE* pipe = popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof buffer, pipe)) ran.output.append(buffer, count);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

inline std::string file_text(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A folder of its own with a small valid t.yaml; removed at the end.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/drivetrain_test_XXXXXX";
    folder_ = mkdtemp(name) == nullptr ? "." : name;
    std::ofstream(folder_ / "t.yaml")
        << "run: {name: t1}\nmodel: {preset: gpt2-124m}\ndata: {train: [a.txt]}\nsteps: 3\n";
  }
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path attempt(int number) const {
    return folder_ / "runs/t1" / ("attempt-" + std::to_string(number));
  }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // A line of bash in the folder, where $D is the program. The environment is clean of Open MPI's and Slurm's variables.
  Ran shell(const std::string& line) const {
    const auto script = write(
        "script.sh", "cd " + folder_.string() + "\nunset ${!OMPI_*} ${!SLURM_*}\nD=" DRIVETRAIN_BINARY "\n" + line);
    return run_shell("exec bash " + script.string());
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace drivetrain
