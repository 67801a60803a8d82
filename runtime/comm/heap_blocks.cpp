#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "kernels/error.h"
#include "runtime/comm/shared_block.h"

namespace drivetrain {
namespace {

class HeapBlocks final : public BlockFactory {
 public:
  std::string transport() const override { return "threads"; }

  SharedBlock create(std::size_t bytes, BlockTicket& ticket) override {
    constexpr std::size_t kPage = 4096;
    const std::size_t size = (bytes + kPage - 1) / kPage * kPage;
    void* p = std::aligned_alloc(kPage, size);
    if (!p) throw Error(ErrorKind::kMemory, "cannot allocate " + std::to_string(size) + " bytes shared by threads");
    std::memset(p, 0, size);
    SharedBlock block{std::shared_ptr<void>(p, std::free), static_cast<std::byte*>(p), bytes};
    std::memcpy(ticket.bytes.data(), &block.data, sizeof block.data);
    const std::lock_guard lock(mutex_);
    open_[block.data] = block;
    return block;
  }

  SharedBlock open(const BlockTicket& ticket, std::size_t) override {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(address(ticket));
    if (found == open_.end()) throw Error(ErrorKind::kLogic, "a block shared by threads was opened after its seal");
    return found->second;
  }

  void commit(const SharedBlock&, std::size_t, std::size_t) override {}

  void seal(const BlockTicket& ticket) noexcept override {
    const std::lock_guard lock(mutex_);
    open_.erase(address(ticket));
  }

 private:
  static std::byte* address(const BlockTicket& ticket) {
    std::byte* p = nullptr;
    std::memcpy(&p, ticket.bytes.data(), sizeof p);
    return p;
  }

  std::mutex mutex_;
  std::map<std::byte*, SharedBlock> open_;
};

}  // namespace

std::shared_ptr<BlockFactory> make_heap_blocks() {
  return std::make_shared<HeapBlocks>();
}

}  // namespace drivetrain
