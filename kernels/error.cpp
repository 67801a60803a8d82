#include "kernels/error.h"

namespace drivetrain {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kConfig:
      return 64;
    case ErrorKind::kPreflight:
      return 10;
    case ErrorKind::kLaunch:
      return 11;
    case ErrorKind::kHang:
      return 12;
    case ErrorKind::kNodeLost:
      return 13;
    case ErrorKind::kRestartsUsed:
      return 14;
    case ErrorKind::kStopped:
      return 75;
    case ErrorKind::kData:
      return 65;
    case ErrorKind::kIo:
      return 74;
    case ErrorKind::kDevice:
      return 69;
    case ErrorKind::kMemory:
      return 71;
    case ErrorKind::kComm:
      return 76;
    case ErrorKind::kNumeric:
      return 20;
    case ErrorKind::kLogic:
      return 70;
  }
  return 70;
}

const char* name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kConfig:
      return "config";
    case ErrorKind::kPreflight:
      return "preflight";
    case ErrorKind::kLaunch:
      return "launch";
    case ErrorKind::kHang:
      return "hang";
    case ErrorKind::kNodeLost:
      return "node lost";
    case ErrorKind::kRestartsUsed:
      return "restarts used up";
    case ErrorKind::kStopped:
      return "stopped";
    case ErrorKind::kData:
      return "data";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kDevice:
      return "device";
    case ErrorKind::kMemory:
      return "memory";
    case ErrorKind::kComm:
      return "comm";
    case ErrorKind::kNumeric:
      return "numeric";
    case ErrorKind::kLogic:
      return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

}  // namespace drivetrain
