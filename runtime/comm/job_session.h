// What keeps a process part of its job (MPI), seen by those who must not know MPI.
#pragma once

namespace drivetrain {

class JobSession {
 public:
  // Leaves the job: cleanly (a step that waits for the peers) only if nothing went wrong.
  virtual ~JobSession() = default;
  // Something went wrong: leaving must not wait for peers that may never come.
  virtual void spoil() noexcept = 0;
};

}  // namespace drivetrain
