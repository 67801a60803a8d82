// A TensorBoard event file: scalars by tag and step, as TFRecords of hand-encoded Event messages (the formats are fixed by
// tensorboard/compat/proto/event.proto and summary.proto). Written by one thread; each call is one complete record.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace drivetrain {

using Scalars = std::vector<std::pair<std::string, double>>;  // tag, value

class TensorboardFile {
 public:
  // Opens a new file of its own in `folder`, which is made: TensorBoard reads the files of a folder in order of name,
  // which begins with the time. Throws kIo.
  TensorboardFile(const std::filesystem::path& folder, const std::string& host);
  // A run goes on after `step`: what earlier files say about later steps is void.
  void restart_after(std::int64_t step);
  void add(std::int64_t step, const Scalars& scalars);  // handed to the system when it returns; throws kIo
  const std::filesystem::path& path() const { return path_; }

 private:
  void write(const std::string& event);

  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace drivetrain
