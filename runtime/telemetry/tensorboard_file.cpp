#include "runtime/telemetry/tensorboard_file.h"

#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <system_error>

#include "kernels/error.h"
#include "runtime/telemetry/crc32c.h"

namespace drivetrain {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

template <class T>
void put_raw(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// Protocol buffers wire format (protobuf.dev/programming-guides/encoding): a field is number << 3 | wire type.
enum Wire : unsigned { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_key(std::string& out, unsigned field, Wire wire) {
  put_varint(out, field << 3 | wire);
}
void put_bytes(std::string& out, unsigned field, const std::string& bytes) {
  put_key(out, field, kLength);
  put_varint(out, bytes.size());
  out += bytes;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// message Event { double wall_time = 1; int64 step = 2; ... }
std::string event_at(std::int64_t step) {
  std::string event;
  put_key(event, 1, kFixed64);
  put_raw(event, wall_seconds());
  put_key(event, 2, kVarint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::filesystem::path unused_name(const std::filesystem::path& folder, const std::string& host) {
  const std::string base = "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_seconds())) + "." +
                           host + "." + std::to_string(getpid()) + ".";
  for (int n = 0;; ++n)
    if (const auto path = folder / (base + std::to_string(n)); !std::filesystem::exists(path)) return path;
}

}  // namespace

TensorboardFile::TensorboardFile(const std::filesystem::path& folder, const std::string& host) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw Error(ErrorKind::kIo, folder.string() + ": cannot be made: " + failed.message());
  path_ = unused_name(folder, host);
  out_.open(path_, std::ios::binary);
  std::string event = event_at(0);
  put_bytes(event, 3, "brain.Event:2");  // Event.file_version
  write(event);
}

void TensorboardFile::restart_after(std::int64_t step) {
  std::string session;  // message SessionLog { SessionStatus status = 1; }, START = 1
  put_key(session, 1, kVarint);
  put_varint(session, 1);
  std::string event = event_at(step + 1);
  put_bytes(event, 7, session);  // Event.session_log
  write(event);
}

void TensorboardFile::add(std::int64_t step, const Scalars& scalars) {
  std::string summary;  // message Summary { repeated Value value = 1; }
  for (const auto& [tag, scalar] : scalars) {
    std::string value;  // message Value { string tag = 1; float simple_value = 2; }
    put_bytes(value, 1, tag);
    put_key(value, 2, kFixed32);
    put_raw(value, static_cast<float>(scalar));
    put_bytes(summary, 1, value);
  }
  std::string event = event_at(step);
  put_bytes(event, 5, summary);  // Event.summary
  write(event);
}

// TFRecord: length, its checksum, the data, its checksum.
void TensorboardFile::write(const std::string& event) {
  std::string record;
  put_raw(record, static_cast<std::uint64_t>(event.size()));
  put_raw(record, masked_crc32c(record));
  record += event;
  put_raw(record, masked_crc32c(event));
  out_.write(record.data(), static_cast<std::streamsize>(record.size())).flush();
  if (!out_) throw Error(ErrorKind::kIo, "cannot write " + path_.string() + ": is the disk full?");
}

}  // namespace drivetrain
