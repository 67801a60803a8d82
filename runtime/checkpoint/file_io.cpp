#include "runtime/checkpoint/file_io.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "kernels/error.h"
#include "runtime/data/mapped_file.h"

namespace drivetrain {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

bool is_out_of_room(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

[[noreturn]] void throw_out_of_room(const std::filesystem::path& file, int error, std::uint64_t needed_bytes) {
  std::string text = "cannot write " + file.string() + ": " + reason(error) + "; it needs " +
                     std::to_string(needed_bytes) + " more bytes";
  struct statvfs info {};
  if (::statvfs(file.parent_path().c_str(), &info) == 0)
    text += ", the file system has " + std::to_string(static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize) +
            " bytes free";
  throw Error(ErrorKind::kIo, text + "; free some space or write elsewhere");
}

}  // namespace

void throw_io(const std::string& action, const std::filesystem::path& file, int error) {
  throw Error(ErrorKind::kIo, "cannot " + action + " " + file.string() + ": " + reason(error));
}

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

OutputFile::OutputFile(const std::filesystem::path& file, std::uint64_t expected_bytes)
    : path_(file), expected_bytes_(expected_bytes) {
  descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0 && is_out_of_room(errno)) throw_out_of_room(path_, errno, expected_bytes_);
  if (descriptor_ < 0) throw_io("create", file, errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kLargestWrite = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && is_out_of_room(errno))
      throw_out_of_room(path_, errno, std::max<std::uint64_t>(expected_bytes_, bytes.size()) - written_bytes_);
    if (n < 0) throw_io("write", path_, errno);
    written_bytes_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void OutputFile::sync_and_close() {
  if (::fsync(descriptor_) != 0) {
    if (is_out_of_room(errno)) throw_out_of_room(path_, errno, expected_bytes_);
    throw_io("write to disk", path_, errno);
  }
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_io("close", path_, errno);
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_io("open folder", folder, errno);
  // Some network file systems have no fsync of folders (EINVAL); there the rename itself is durable.
  const int error = ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
  ::close(descriptor);
  if (error != 0) throw_io("write to disk folder", folder, error);
}

void write_text_file(const std::filesystem::path& file, std::string_view text) {
  OutputFile out(file, text.size());
  out.write(std::as_bytes(std::span(text)));
  out.sync_and_close();
}

void replace_text_file(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::path temporary = file;
  temporary.replace_filename(".tmp-" + file.filename().string());
  write_text_file(temporary, text);
  if (::rename(temporary.c_str(), file.c_str()) != 0) throw_io("replace", file, errno);
  sync_folder(file.parent_path());
}

std::string read_text_file(const std::filesystem::path& file, std::uint64_t max_bytes) {
  const MappedFile mapped(file);
  if (mapped.bytes().size() > max_bytes)
    throw Error(ErrorKind::kData, file.string() + " has " + std::to_string(mapped.bytes().size()) +
                                      " bytes, more than the " + std::to_string(max_bytes) + " allowed for its kind");
  return std::string(mapped.bytes());
}

}  // namespace drivetrain
