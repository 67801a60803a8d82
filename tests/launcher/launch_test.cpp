// `drivetrain launch` under a real mpirun, with shell programs in the place of the training.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "launcher/process.h"
#include "tests/launcher/run_binary.h"

namespace drivetrain {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// Runs a shell program on the ranks; $R is the world rank in it.
std::string launch(const std::string& options, const std::string& program) {
  return "$D launch t.yaml " + options + " -- bash -c 'R=$OMPI_COMM_WORLD_RANK; " + program + "'";
}

nlohmann::json result_of(const Scratch& scratch, int attempt) {
  return nlohmann::json::parse(file_text(scratch.attempt(attempt) / "result.json"));
}

// LA-01
TEST(Launch, MoreRanksThanCoresAllRun) {
  const Scratch scratch;
  const Ran ran = scratch.shell(launch("-n 5", "touch ran.$R"));
  EXPECT_EQ(ran.code, 0) << ran.output;
  for (int rank = 0; rank < 5; ++rank)
    EXPECT_TRUE(std::filesystem::exists(scratch.folder() / ("ran." + std::to_string(rank))));
  EXPECT_TRUE(ran.says("5 ranks on ") && ran.says("all 5 are started")) << ran.output;
  EXPECT_FALSE(ran.says("slots available"));
}

// LA-02: the shell of these tests has no OMPI_ALLOW_RUN_AS_ROOT; mpirun alone would refuse.
TEST(Launch, RunsAsRootAndSaysHow) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  const Scratch scratch;
  EXPECT_NE(scratch.shell("mpirun -np 1 true").code, 0);
  const Ran ran = scratch.shell(launch("-n 2", "true"));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(ran.says("OMPI_ALLOW_RUN_AS_ROOT"));
}

// LA-06
TEST(Launch, VariablesArriveIntactOnEveryRank) {
  const Scratch scratch;
  const std::string env = "export FROM_US='u;v=w'; ";
  const std::string options = "-n 2 --env 'SPACED=a  b=c \"q\" $x' --env EMPTY= --env FROM_US";
  const Ran dry = scratch.shell(env + launch(options + " --dry-run", "true"));
  EXPECT_EQ(dry.code, 0);
  for (const char* once : {" -x SPACED ", " -x EMPTY ", " -x FROM_US "}) {
    const std::size_t first = dry.output.find(once);
    EXPECT_NE(first, std::string::npos) << once;
    EXPECT_EQ(dry.output.find(once, first + 1), std::string::npos) << once;
  }
  EXPECT_TRUE(dry.says("export SPACED='a  b=c \"q\" $x'\n")) << dry.output;
  EXPECT_FALSE(std::filesystem::exists(scratch.folder() / "runs"));  // a dry run makes nothing
  const Ran ran =
      scratch.shell(env + launch(options, "printf \"%s|%s|%s\" \"$SPACED\" \"${EMPTY-unset}\" \"$FROM_US\" >env.$R"));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(file_text(scratch.folder() / "env.0"), "a  b=c \"q\" $x||u;v=w");
  EXPECT_EQ(file_text(scratch.folder() / "env.1"), "a  b=c \"q\" $x||u;v=w");
}

// LA-06 on a second daemon with an empty environment of its own, as ssh would give.
TEST(Launch, VariablesReachOtherHosts) {
  const Scratch scratch;
  const auto agent = scratch.write(
      "agent", "#!/bin/sh\nwhile [ \"$1\" = -o ]; do shift 2; done\nhost=$1; shift; mkdir -p " +
                   scratch.folder().string() + "/$host\nexec env -i TMPDIR=" + scratch.folder().string() +
                   "/$host PATH=/usr/bin:/bin HOME=/ OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh -c "
                   "\"$*\"\n");
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  const Ran ran = scratch.shell("export OMPI_MCA_plm_rsh_agent=" + agent.string() + "; " +
                                launch("--host 127.0.0.2:1,127.0.0.3:1 --env 'SPACED=a b;c=d'",
                                       "printf %s \"$SPACED\" >env.$R; echo hello from $R"));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(file_text(scratch.folder() / "env.0"), "a b;c=d");
  EXPECT_EQ(file_text(scratch.folder() / "env.1"), "a b;c=d");
  EXPECT_TRUE(ran.says("hello from 0")) << ran.output;
}

// LA-07: exit, death and abort of one rank while the other would wait for ever.
TEST(Launch, TheFirstFailingRankIsNamedWithItsCode) {
  struct Failure {
    const char *program, *named;
    int code;
  };
  const Failure failures[] = {
      {"if [ $R = 1 ]; then echo last words >&2; exit 7; fi; exec sleep 60", "rank 1 on HOST (exit 7)", 7},
      {"if [ $R = 1 ]; then kill -9 $$; fi; exec sleep 60", "rank 1 on HOST (killed by signal 9 (Killed))", 137},
      {"if [ $R = 0 ]; then kill -11 $$; fi; trap \"\" TERM; while :; do sleep 0.2; done",
       "rank 0 on HOST (killed by signal 11 (Segmentation fault))", 139},
  };
  const Scratch scratch;
  std::string host = scratch.shell("uname -n").output;
  host = host.substr(0, host.find_first_of(".\n"));
  int attempt = 0;
  for (const Failure& failure : failures) {
    const auto start = steady_clock::now();
    const Ran ran = scratch.shell(launch("-n 2", failure.program));
    EXPECT_LT(steady_clock::now() - start, seconds(15));
    EXPECT_EQ(ran.code, failure.code) << ran.output;
    std::string named = failure.named;
    named.replace(named.find("HOST"), 4, host);
    EXPECT_TRUE(ran.says(named)) << ran.output;
    const auto result = result_of(scratch, attempt++);
    EXPECT_EQ(result["exit_code"], failure.code);
    EXPECT_EQ(result["cause"]["host"], host);
  }
  EXPECT_EQ(result_of(scratch, 0)["cause"]["rank"], 1);
  EXPECT_EQ(file_text(scratch.attempt(0) / "ranks/rank-00001.err"), "last words\n");
}

// LA-07 with the training itself: the peer sees the death first, yet the dead rank is named.
TEST(Launch, AKilledTrainingRankIsNamed) {
  const Scratch scratch;
  const std::string mark = scratch.folder().filename().string();
  const Ran ran =
      scratch.shell("$D launch " DRIVETRAIN_SOURCE_DIR "/configs/tiny.yaml -n 2 --env MARK=" + mark +
                    " --set steps=1000000 --set telemetry.progress=off & p=$!\n"
                    "for i in $(seq 300); do [ -s runs/tiny/metrics.jsonl ] && break; sleep 0.1; done\n"
                    "for e in /proc/[0-9]*/environ; do\n"
                    "  grep -qz ^MARK=" +
                    mark +
                    "$ $e && grep -qz ^OMPI_COMM_WORLD_RANK=1$ $e && "
                    "kill -9 $(basename $(dirname $e))\n"
                    "done 2>/dev/null\n"
                    "SECONDS=0; wait $p; code=$?; echo took $SECONDS s; [ $SECONDS -lt 15 ] || exit 99; exit $code");
  EXPECT_EQ(ran.code, 137) << ran.output;
  EXPECT_TRUE(ran.says("the job failed: rank 1 on ")) << ran.output;
  EXPECT_TRUE(processes_with("MARK", mark).empty());
}

TEST(Launch, TheLastWordsOfTheCauseAreShown) {
  const Scratch scratch;
  const Ran ran = scratch.shell(launch("-n 2", "if [ $R = 1 ]; then echo last words >&2; exit 7; fi; exec sleep 60"));
  EXPECT_TRUE(ran.says("--- last lines of rank 1:\nlast words\n")) << ran.output;
}

TEST(Launch, OutputOfEveryRankIsKept) {
  const Scratch scratch;
  const Ran ran = scratch.shell(launch("-n 2", "echo out $R; echo err $R >&2"));
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.says("out 0\n") && ran.says("err 0\n")) << ran.output;
  EXPECT_FALSE(ran.says("out 1"));
  EXPECT_EQ(file_text(scratch.attempt(0) / "ranks/rank-00000.out"), "out 0\n");
  EXPECT_EQ(file_text(scratch.attempt(0) / "ranks/rank-00000.err"), "err 0\n");
  EXPECT_EQ(file_text(scratch.attempt(0) / "ranks/rank-00001.out"), "out 1\n");
  EXPECT_EQ(file_text(scratch.attempt(0) / "ranks/rank-00001.err"), "err 1\n");
}

TEST(Launch, RanksGetTheirShareOfTheHost) {
  const Scratch scratch;
  const Ran ran = scratch.shell(launch("-n 2", "echo $LOCAL_RANK $OMP_NUM_THREADS $(nproc) >share.$R"));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(file_text(scratch.folder() / "share.1").substr(0, 2), "1 ");
  const Ran chosen = scratch.shell("export OMP_NUM_THREADS=3; " + launch("-n 1", "echo $OMP_NUM_THREADS"));
  EXPECT_TRUE(chosen.says("\n3\n")) << chosen.output;
}

TEST(Launch, FailuresToStartAreElevenInOneLine) {
  const Scratch scratch;
  const Ran missing = scratch.shell("$D launch t.yaml -n 2 -- /absent/program");
  EXPECT_EQ(missing.code, 11) << missing.output;
  EXPECT_TRUE(missing.says("cannot run /absent/program: No such file or directory")) << missing.output;
  EXPECT_FALSE(missing.says("-----------"));
  const Ran agent = scratch.shell(
      "export OMPI_MCA_plm_rsh_agent=/bin/false; $D launch t.yaml --host 127.0.0.2:1,127.0.0.3:1 -- true");
  EXPECT_EQ(agent.code, 11) << agent.output;
  EXPECT_TRUE(agent.says("a host could not be reached or has no orted")) << agent.output;
}

// LA-13
TEST(Launch, NamesThatDoNotResolveEndInAClearFailure) {
  const Scratch scratch;
  scratch.write("hosts", "no-such-host.invalid slots=2\n");
  const auto start = steady_clock::now();
  const Ran ran = scratch.shell("$D launch t.yaml --hostfile hosts --wait-hosts 1 -- true");
  EXPECT_LT(steady_clock::now() - start, seconds(30));
  EXPECT_EQ(ran.code, 11) << ran.output;
  EXPECT_TRUE(ran.says("waiting for the address of no-such-host.invalid")) << ran.output;
  EXPECT_TRUE(ran.says("do not resolve")) << ran.output;
}

TEST(Launch, RefusesBeforeAnythingIsMade) {
  const Scratch scratch;
  EXPECT_EQ(scratch.shell("$D launch t.yaml -n 2 --set optimizer.lr=fast -- true").code, 64);
  EXPECT_EQ(scratch.shell("$D launch t.yaml -n 3 --set parallel.tp=2 -- true").code, 64);
  EXPECT_EQ(scratch.shell("$D launch t.yaml -n 2 --interface eth77 -- true").code, 64);
  EXPECT_EQ(scratch.shell("$D launch t.yaml -n 2 --mpirun /bin/true -- true").code, 10);
  EXPECT_EQ(scratch.shell("$D launch t.yaml -n 2 --mpirun /absent/mpirun -- true").code, 10);
  EXPECT_FALSE(std::filesystem::exists(scratch.folder() / "runs"));
}

// LA-10
TEST(Launch, TwoJobsAtOnceDoNotDisturbEachOther) {
  const Scratch scratch;
  const std::string one = launch("-n 2", "sleep 0.2");
  const Ran ran = scratch.shell("for i in 1 2 3 4 5; do " + one + " & a=$!; " + one +
                                " & b=$!; wait $a || exit 1; wait $b || exit 2; done");
  EXPECT_EQ(ran.code, 0) << ran.output;
  for (int attempt = 0; attempt < 10; ++attempt) EXPECT_EQ(result_of(scratch, attempt)["exit_code"], 0);
}

// A program that needs a second to save and then leaves with 75.
constexpr const char* kSaves =
    "trap \"sleep 1.5; touch saved.$R; exit 75\" USR1; touch up.$R; while :; do sleep 0.1; done";
constexpr const char* kStubborn = "trap \"\" TERM USR1; touch up.$R; while :; do sleep 0.1; done";
constexpr const char* kBothUp = "for i in $(seq 100); do [ -e up.0 ] && [ -e up.1 ] && break; sleep 0.1; done; ";

TEST(Launch, StopSignalsGiveTheRanksTimeToSave) {
  for (const char* signal : {"TERM", "INT", "USR1"}) {
    const Scratch scratch;
    const Ran ran =
        scratch.shell(launch("-n 2", kSaves) + " & p=$!; " + kBothUp + "kill -" + signal + " $p; wait $p");
    EXPECT_EQ(ran.code, 75) << signal << ran.output;
    EXPECT_TRUE(std::filesystem::exists(scratch.folder() / "saved.0")) << signal;
    EXPECT_TRUE(std::filesystem::exists(scratch.folder() / "saved.1")) << signal;
    EXPECT_TRUE(result_of(scratch, 0)["cause"].is_null());
  }
}

TEST(Launch, ALateStopIsEndedAfterTheGrace) {
  const Scratch scratch;
  const Ran ran =
      scratch.shell(launch("-n 2 --grace 1", kStubborn) + " & p=$!; " + kBothUp + "kill -TERM $p; wait $p");
  EXPECT_EQ(ran.code, 12) << ran.output;
  EXPECT_TRUE(ran.says("did not stop within 1 s")) << ran.output;
}

TEST(Launch, ASecondStopSignalEndsTheJobNow) {
  const Scratch scratch;
  const auto start = steady_clock::now();
  const Ran ran = scratch.shell(launch("-n 2", kStubborn) + " & p=$!; " + kBothUp +
                                "kill -INT $p; sleep 0.3; kill -INT $p; wait $p");
  EXPECT_EQ(ran.code, 130) << ran.output;
  EXPECT_LT(steady_clock::now() - start, seconds(20));
}

// Whoever is killed, nothing of the job stays; other jobs are left alone.
TEST(Launch, NothingIsLeftBehind) {
  const std::string kills[] = {"kill -9 $p", "kill -9 $(pgrep -P $p)",
                               "kill -STOP $(pgrep -P $p); kill -TERM $p; sleep 2.2; kill -TERM $p"};
  for (const std::string& how : kills) {
    const Scratch scratch;
    const std::string mark = scratch.folder().filename().string();
    const Ran ran =
        scratch.shell(launch("-n 2 --env MARK=" + mark, kStubborn) + " & p=$!; " + kBothUp + how + "; wait $p");
    EXPECT_NE(ran.code, 0) << how;
    EXPECT_TRUE(std::filesystem::exists(scratch.folder() / "up.1")) << ran.output;
    const auto end = steady_clock::now() + seconds(15);
    while (!processes_with("MARK", mark).empty() && steady_clock::now() < end) usleep(100000);
    EXPECT_TRUE(processes_with("MARK", mark).empty()) << how;
    for (const pid_t pid : processes_with("MARK", mark)) kill(pid, SIGKILL);
  }
}

TEST(Launch, EveryStartHasItsOwnFolder) {
  const Scratch scratch;
  EXPECT_EQ(scratch.shell(launch("-n 1", "true")).code, 0);
  EXPECT_EQ(scratch.shell(launch("-n 1", "exit 3")).code, 3);
  EXPECT_EQ(result_of(scratch, 0)["exit_code"], 0);
  EXPECT_EQ(result_of(scratch, 1)["exit_code"], 3);
  EXPECT_NE(file_text(scratch.attempt(1) / "command.txt").find("rank-exec -- bash -c "), std::string::npos);
  std::istringstream events(file_text(scratch.attempt(1) / "events.jsonl"));
  std::string last;
  for (std::string line; std::getline(events, line);) last = nlohmann::json::parse(line)["event"];
  EXPECT_EQ(last, "end");
}

}  // namespace
}  // namespace drivetrain
