// Holds signals back from threads that are started while it lives, so that they reach the thread that trains. Threads
// inherit the mask.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace drivetrain {

class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace drivetrain
