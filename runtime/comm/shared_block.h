// Memory that all ranks of one host group can reach, behind one interface: the heap for ranks that are threads, POSIX
// shared memory for ranks that are processes. Says nothing about what lies inside.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace drivetrain {

struct SharedBlock {
  std::shared_ptr<void> owner;  // the mapping lives as long as this
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// How a peer finds a block. Plain bytes, so that it can travel through shared memory or MPI.
struct BlockTicket {
  std::array<char, 96> bytes{};
};

class BlockFactory {
 public:
  virtual ~BlockFactory() = default;
  virtual std::string transport() const = 0;
  // Address space for a zeroed block, aligned to a page. No part of it may be touched before somebody has committed it.
  virtual SharedBlock create(std::size_t bytes, BlockTicket& ticket) = 0;
  // Throws kComm when the block cannot be reached from this process.
  virtual SharedBlock open(const BlockTicket& ticket, std::size_t bytes) = 0;
  // Takes the memory of [begin, begin + bytes), best by the rank that will use it most. Throws kPreflight naming the
  // bytes wanted and free when there is too little.
  virtual void commit(const SharedBlock& block, std::size_t begin, std::size_t bytes) = 0;
  // After all peers have opened it, by the creator: nobody can open it any more; it goes with its last user.
  virtual void seal(const BlockTicket& ticket) noexcept = 0;
};

// Blocks on the heap of this process.
std::shared_ptr<BlockFactory> make_heap_blocks();
// POSIX shared memory. Names are unique per process and gone once sealed.
std::shared_ptr<BlockFactory> make_shm_blocks();
// Removes the names that killed runs of this user left behind on this host; never throws.
void remove_shm_leftovers() noexcept;

}  // namespace drivetrain
