// The one exception type of drivetrain and its kinds. Libraries throw it; only main() turns it into an exit code.
#pragma once
#include <stdexcept>
#include <string>

namespace drivetrain {

enum class ErrorKind {
  kUsage,         // wrong command line
  kConfig,        // wrong or inconsistent configuration
  kPreflight,     // the machine cannot run this
  kLaunch,        // ranks could not be started
  kHang,          // nobody moves
  kNodeLost,      // a host went away
  kRestartsUsed,  // restart budget spent
  kStopped,       // stopped on request, checkpoint saved
  kData,          // bad input data: text, tokenizer, weights
  kIo,            // the file system refused
  kDevice,        // the device is absent or refused
  kMemory,        // does not fit
  kComm,          // a collective failed or a peer died
  kNumeric,       // NaN, Inf
  kLogic,         // a bug of ours
};

// Process exit code of a kind; stable, scripts rely on it (docs/config.md lists them).
int exit_code(ErrorKind kind);
// Short lower-case name, e.g. "config".
const char* name(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return drivetrain::exit_code(kind_); }

 private:
  ErrorKind kind_;
};

}  // namespace drivetrain
