#include "runtime/signals.h"

#include <gtest/gtest.h>

#include <csignal>

#include "kernels/error.h"

namespace drivetrain {
namespace {

TEST(StopSignals, EachOfThemRequestsAStop) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    const StopSignals signals;
    EXPECT_FALSE(signals.requested());
    std::raise(signal);
    EXPECT_TRUE(signals.requested());
  }
}

TEST(StopSignals, ASecondInterruptIsNotHeld) {
  const StopSignals signals;
  std::raise(SIGINT);
  EXPECT_EQ(std::signal(SIGINT, SIG_IGN), SIG_DFL);
}

TEST(StopSignals, PutsTheOldHandlerBack) {
  std::signal(SIGUSR1, SIG_IGN);
  { const StopSignals signals; }
  EXPECT_EQ(std::signal(SIGUSR1, SIG_DFL), SIG_IGN);
}

TEST(StopSignals, ThereIsOneAtATime) {
  const StopSignals signals;
  EXPECT_THROW(StopSignals(), Error);
}

}  // namespace
}  // namespace drivetrain
