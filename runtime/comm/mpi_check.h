// Turns the return code of an MPI call into an Error. Included by the mpi_* files only.
#pragma once
#include <mpi.h>

#include <array>
#include <string>

#include "kernels/error.h"

namespace drivetrain {

// `what` names the call, e.g. "MPI_Isend to rank 3".
inline void check_mpi(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(ErrorKind::kComm, what + " failed: " + std::string(text.data(), static_cast<std::size_t>(length)));
}

}  // namespace drivetrain
