#include "launcher/scratch_folder.h"

#include <cstdlib>

#include "kernels/error.h"

namespace drivetrain {

ScratchFolder::ScratchFolder(const std::string& prefix) {
  std::string name = (std::filesystem::temp_directory_path() / (prefix + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) throw Error(ErrorKind::kIo, "cannot make a folder like " + name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!kept_) std::filesystem::remove_all(path_, error);
}

}  // namespace drivetrain
