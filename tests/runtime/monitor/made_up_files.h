// A folder of made-up files that stands for /proc and /sys; gone with the object.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace drivetrain {

class MadeUpFiles {
 public:
  MadeUpFiles() {
    static int count = 0;
    root_ = std::filesystem::temp_directory_path() /
            ("drivetrain_monitor_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(root_);
  }
  ~MadeUpFiles() { std::filesystem::remove_all(root_); }
  MadeUpFiles(const MadeUpFiles&) = delete;
  MadeUpFiles& operator=(const MadeUpFiles&) = delete;

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::create_symlink(target, root_ / path);
  }
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace drivetrain
