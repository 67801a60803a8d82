// What mpirun says is understood; what the ranks say is passed on; the right rank is blamed.
#include "launcher/engine_text.h"

#include <gtest/gtest.h>

#include "launcher/cause.h"

namespace drivetrain {
namespace {

const std::string frame = std::string(74, '-') + "\n";

struct Read {
  std::string console;
  EngineText text;
};

Read read(const std::string& bytes, std::size_t chunk = 7) {
  Read result;
  for (std::size_t at = 0; at < bytes.size(); at += chunk)
    result.console += result.text.feed(bytes.substr(at, chunk));
  result.console += result.text.finish();
  return result;
}

const std::string exit_seven =
    frame +
    "Primary job  terminated normally, but 1 process returned\n"
    "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
    frame + frame +
    "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    "the job to be terminated. The first process to do so was:\n\n"
    "  Process name: [[10617,1],1]\n  Exit code:    7\n" +
    frame;

TEST(EngineText, FindsTheFirstExit) {
  const Read result = read("rank 0 says hello\n" + exit_seven + "and goodbye\n");
  EXPECT_EQ(result.console, "rank 0 says hello\nand goodbye\n");
  ASSERT_TRUE(result.text.verdict());
  EXPECT_EQ(result.text.verdict()->world_rank, 1);
  EXPECT_EQ(result.text.verdict()->exit_code, 7);
  EXPECT_EQ(result.text.verdict()->reason, "exit 7");
}

TEST(EngineText, FindsSignalsAbortsAndLostHosts) {
  const auto verdict = [](const std::string& block) { return read(frame + block + frame).text.verdict().value(); };
  const auto killed =
      verdict("mpirun noticed that process rank 3 with PID 0 on node vm exited on signal 9 (Killed).\n");
  EXPECT_EQ(killed.world_rank, 3);
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_EQ(killed.host, "vm");
  EXPECT_EQ(killed.reason, "killed by signal 9 (Killed)");
  const auto aborted =
      verdict("MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 65.\n\nNOTE: ...\n");
  EXPECT_EQ(aborted.world_rank, 2);
  EXPECT_EQ(aborted.exit_code, 65);
  const auto improper =
      verdict("mpirun has exited due to process rank 1 with PID 0 on\nnode vm exiting improperly. There are\n");
  EXPECT_EQ(improper.world_rank, 1);
  EXPECT_EQ(improper.reason, "left without MPI_Finalize");
  const auto lost = verdict(
      "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[1,0],0] on node vm\n"
      "  Remote daemon: [[1,0],1] on node node2\n");
  EXPECT_EQ(lost.kind, EngineVerdict::Kind::kNodeLost);
  EXPECT_EQ(lost.host, "node2");
  EXPECT_EQ(verdict("There are not enough slots available in the system\n").kind, EngineVerdict::Kind::kLaunchFailed);
}

TEST(EngineText, PassesOnWhatItDoesNotKnow) {
  EXPECT_EQ(read(frame + "A new message\nof mpirun\n" + frame).console, "A new message\nof mpirun\n");
  EXPECT_EQ(read(frame + "a rank that draws lines\n").console, "a rank that draws lines\n");  // never lost
  EXPECT_EQ(read("no newline").console, "no newline\n");
  EXPECT_EQ(read("mpirun: Forwarding signal 10 to job\n").console, "");
  EXPECT_EQ(read("[vm:1] 3 more processes have sent help message help-x.txt\n").console, "");
  const std::string long_line(100000, 'x');
  EXPECT_EQ(read(long_line + "\n", 4096).console, long_line + "\n");
  EXPECT_EQ(read(frame + long_line + "\n" + long_line + "\n", 4096).console, long_line + "\n" + long_line + "\n");
}

RankFailure note(int rank, const std::string& kind, int code, std::int64_t time_ms) {
  return {rank, "vm", "step 3", kind, "words", code, time_ms};
}

TEST(Cause, TheFirstWhoFailedByItselfIsToBlame) {
  Evidence evidence;
  evidence.engine_exit_code = 76;
  evidence.rank_host = {"vm", "vm", "vm"};
  evidence.notes = {note(0, "comm", 76, 1), note(2, "data", 65, 30), note(1, "numeric", 20, 20)};
  evidence.verdict = EngineVerdict{EngineVerdict::Kind::kRankFailed, 0, 76, "", "exit 76"};
  const Outcome outcome = judge(evidence);
  EXPECT_EQ(outcome.text(), "rank 1 on vm (step 3: numeric: words)");
  EXPECT_EQ(outcome.exit_code, 20);
}

TEST(Cause, AKilledRankComesBeforeThoseWhoMissIt) {
  Evidence evidence;
  evidence.engine_exit_code = 137;
  evidence.rank_host = {"a", "b"};
  evidence.notes = {note(0, "comm", 76, 1)};
  evidence.verdict = EngineVerdict{EngineVerdict::Kind::kRankFailed, 1, 137, "", "killed by signal 9 (Killed)"};
  EXPECT_EQ(judge(evidence).text(), "rank 1 on b (killed by signal 9 (Killed))");
  EXPECT_EQ(judge(evidence).exit_code, 137);
  evidence.verdict->world_rank = 0;  // mpirun saw only the victim
  EXPECT_EQ(judge(evidence).text(), "rank 0 on vm (step 3: comm: words)");
}

TEST(Cause, TranslatesTheFailuresOfMpirun) {
  Evidence evidence;
  EXPECT_EQ(judge(evidence).exit_code, 0);
  EXPECT_EQ(judge(evidence).text(), "");
  evidence.engine_exit_code = 75;
  evidence.verdict = EngineVerdict{EngineVerdict::Kind::kRankFailed, 0, 75, "", "exit 75"};
  EXPECT_EQ(judge(evidence).exit_code, 75);
  EXPECT_EQ(judge(evidence).text(), "");  // stopped on request
  evidence.engine_exit_code = 1;
  evidence.verdict = EngineVerdict{EngineVerdict::Kind::kLaunchFailed, -1, 0, "", "too few slots"};
  evidence.last_lines = {"ssh: no route"};
  EXPECT_EQ(judge(evidence).exit_code, 11);
  EXPECT_EQ(judge(evidence).text(), "too few slots; ssh: no route");
  evidence.verdict = EngineVerdict{EngineVerdict::Kind::kNodeLost, -1, 0, "node2", "its daemon does not answer"};
  EXPECT_EQ(judge(evidence).exit_code, 13);
  evidence.verdict.reset();
  EXPECT_EQ(judge(evidence).text(), "mpirun failed with exit code 1: ssh: no route");
  evidence.engine_exit_code = 137;
  evidence.last_lines.clear();
  EXPECT_EQ(judge(evidence).text(), "mpirun was killed by signal 9");
}

}  // namespace
}  // namespace drivetrain
