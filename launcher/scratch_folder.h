// A folder of its own below the system's temporary one, removed with everything in it unless somebody wants to look.
#pragma once
#include <filesystem>
#include <string>

namespace drivetrain {

class ScratchFolder {
 public:
  // Named `prefix` and six random characters. Throws kIo.
  explicit ScratchFolder(const std::string& prefix);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace drivetrain
