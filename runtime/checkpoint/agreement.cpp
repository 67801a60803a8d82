#include "runtime/checkpoint/agreement.h"

#include <array>
#include <filesystem>
#include <new>
#include <string>

#include "kernels/buffer.h"

namespace drivetrain {

void Agreement::attempt(const std::function<void()>& body) noexcept {
  if (failure_) return;
  try {
    body();
  } catch (const Error& e) {
    failure_ = e;
  } catch (const std::filesystem::filesystem_error& e) {
    failure_ = Error(ErrorKind::kIo, e.what());
  } catch (const std::bad_alloc&) {
    failure_ = Error(ErrorKind::kMemory, "the host has no memory left");
  } catch (const std::exception& e) {
    failure_ = Error(ErrorKind::kLogic, e.what());
  }
}

void Agreement::settle() {
  const int nobody = group_.size();
  std::array<std::int32_t, 1> first{failed() ? group_.rank() : nobody};
  const Buffer buffer(device_, sizeof(first));
  const Tensor flag = buffer.tensor(DType::kI32);
  device_.upload(flag, std::as_bytes(std::span(first)));
  group_.all_reduce(flag, ReduceOp::kMin).wait();
  device_.download(std::as_writable_bytes(std::span(first)), flag);
  if (first[0] == nobody) return;
  // The first character is the kind, so that one broadcast carries the whole error.
  const std::string text = broadcast_text(
      failed() ? static_cast<char>(failure_->kind()) + std::string(failure_->what()) : std::string(), first[0]);
  const std::string who =
      group_.size() > 1 ? "rank " + std::to_string(first[0]) + " of " + std::to_string(group_.size()) + ": " : "";
  throw Error(static_cast<ErrorKind>(text.at(0)), who + text.substr(1));
}

std::string Agreement::broadcast_text(const std::string& text, int root) {
  std::array<std::int64_t, 1> size{static_cast<std::int64_t>(text.size())};
  const Buffer size_buffer(device_, sizeof(size));
  const Tensor size_tensor = size_buffer.tensor(DType::kI64);
  device_.upload(size_tensor, std::as_bytes(std::span(size)));
  group_.broadcast(size_tensor, root).wait();
  device_.download(std::as_writable_bytes(std::span(size)), size_tensor);

  std::string out = group_.rank() == root ? text : std::string(static_cast<std::size_t>(size[0]), ' ');
  const Buffer buffer(device_, out.size());
  const Tensor tensor = buffer.tensor(DType::kU8);
  device_.upload(tensor, std::as_bytes(std::span(out)));
  group_.broadcast(tensor, root).wait();
  device_.download(std::as_writable_bytes(std::span(out)), tensor);
  return out;
}

}  // namespace drivetrain
