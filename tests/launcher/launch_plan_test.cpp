// The mpirun command as data: what the request, the hosts and the machine turn into.
#include "launcher/launch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/error.h"

namespace drivetrain {
namespace {

MachineFacts machine() {
  MachineFacts facts;
  facts.mpirun = "/opt/ompi/bin/mpirun";
  facts.mpirun_version = "mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n";
  facts.program = "/opt/drivetrain";
  facts.host_name = "vm";
  facts.cores = 2;
  facts.environment = {{"PATH", "/bin"}, {"HOME", "/root"}, {"NCCL_DEBUG", "INFO"}};
  facts.interfaces = {{"lo", "127.0.0.0/8"}, {"eth0", "10.1.2.0/24"}};
  return facts;
}

LaunchRequest request(const HostList& hosts, int ranks) {
  LaunchRequest one;
  one.ranks = ranks;
  one.hosts = hosts;
  one.program = {"prog", "a b"};
  one.rank_folder = "/runs/r/attempt-0/ranks";
  one.job = "token";
  return one;
}

const HostList here{{{"localhost", 2}}, "this machine"};
const HostList two_hosts{{{"node1", 2}, {"node2", 2}}, "--host"};

bool has(const std::vector<std::string>& argv, const std::vector<std::string>& words) {
  return std::search(argv.begin(), argv.end(), words.begin(), words.end()) != argv.end();
}

std::string refusal(const LaunchRequest& one, const MachineFacts& facts, int code) {
  try {
    plan_launch(one, facts);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), code);
    return error.what();
  }
  return "";
}

TEST(LaunchPlan, OneHost) {
  const LaunchPlan plan = plan_launch(request(here, 2), machine());
  const std::vector<std::string> expected{"/opt/ompi/bin/mpirun",
                                          "-np",
                                          "2",
                                          "--bind-to",
                                          "none",
                                          "--host",
                                          "localhost:2",
                                          "--map-by",
                                          "slot",
                                          "--mca",
                                          "plm",
                                          "isolated",
                                          "--mca",
                                          "pml",
                                          "ob1",
                                          "--mca",
                                          "btl",
                                          "self,vader",
                                          "-x",
                                          "DRIVETRAIN_JOB",
                                          "-x",
                                          "DRIVETRAIN_RANK_DIR",
                                          "-x",
                                          "DRIVETRAIN_TERMINAL",
                                          "-x",
                                          "NCCL_DEBUG",
                                          "-x",
                                          "PATH",
                                          "/opt/drivetrain",
                                          "rank-exec",
                                          "--",
                                          "prog",
                                          "a b"};
  EXPECT_EQ(plan.argv, expected);
  EXPECT_EQ(plan.rank_host, (std::vector<std::string>{"vm", "vm"}));
  EXPECT_TRUE(plan.remarks.empty());
  EXPECT_EQ(plan.environment.at("DRIVETRAIN_JOB"), "token");
  EXPECT_EQ(plan.environment.count("OMPI_ALLOW_RUN_AS_ROOT"), 0u);
}

TEST(LaunchPlan, WithoutANumberOfRanksFillsTheSlots) {
  EXPECT_EQ(plan_launch(request(here, 0), machine()).rank_host.size(), 2u);
  EXPECT_EQ(plan_launch(request(two_hosts, 0), machine()).rank_host,
            (std::vector<std::string>{"node1", "node1", "node2", "node2"}));
  const HostList bare{{{"node1", 0}, {"node2", 0}}, "--host"};
  EXPECT_EQ(refusal(request(bare, 0), machine(), 64),
            "--host gives no number of slots; say how many ranks with -n N");
}

// LA-01: more ranks than cores are all started, and the user is told.
TEST(LaunchPlan, MoreRanksThanCores) {
  const LaunchPlan plan = plan_launch(request(here, 3), machine());
  EXPECT_TRUE(has(plan.argv, {"-np", "3"}));
  EXPECT_TRUE(has(plan.argv, {"--host", "localhost:3"}));
  EXPECT_TRUE(has(plan.argv, {"--oversubscribe"}));
  EXPECT_EQ(plan.rank_host.size(), 3u);
  ASSERT_EQ(plan.remarks.size(), 1u);
  EXPECT_EQ(plan.remarks[0], "3 ranks on 2 slots: ranks share cores, which is correct but slow; all 3 are started");
  LaunchRequest off = request(here, 3);
  off.oversubscribe = Oversubscribe::kOff;
  EXPECT_EQ(refusal(off, machine(), 64),
            "3 ranks on 2 slots of this machine: give more slots, fewer ranks, or --oversubscribe on to share cores");
  EXPECT_NE(refusal(request(two_hosts, 5), machine(), 64), "");  // not by itself on other machines
  LaunchRequest on = request(two_hosts, 5);
  on.oversubscribe = Oversubscribe::kOn;
  EXPECT_EQ(plan_launch(on, machine()).rank_host.size(), 5u);
}

// LA-02: root is let through, and said.
TEST(LaunchPlan, Root) {
  MachineFacts facts = machine();
  facts.user = MachineFacts::User::kRoot;
  const LaunchPlan plan = plan_launch(request(here, 2), facts);
  EXPECT_EQ(plan.environment.at("OMPI_ALLOW_RUN_AS_ROOT"), "1");
  EXPECT_EQ(plan.environment.at("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
  ASSERT_EQ(plan.remarks.size(), 1u);
  EXPECT_NE(plan.remarks[0].find("running as root"), std::string::npos);
}

TEST(LaunchPlan, SeveralHosts) {
  const LaunchPlan plan = plan_launch(request(two_hosts, 4), machine());
  EXPECT_TRUE(has(plan.argv, {"--host", "node1:2,node2:2"}));
  EXPECT_TRUE(has(plan.argv, {"--prefix", "/opt/ompi"}));
  EXPECT_TRUE(has(plan.argv, {"--mca", "btl", "self,vader,tcp"}));
  EXPECT_TRUE(has(plan.argv, {"--mca", "plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10"}));
  EXPECT_TRUE(has(plan.argv, {"--mca", "oob_tcp_keepalive_time", "20"}));
  EXPECT_FALSE(has(plan.argv, {"plm", "isolated"}));
  const HostList dotted{{{"n1.site", 1}, {"n2.site", 1}}, "--host"};
  EXPECT_TRUE(has(plan_launch(request(dotted, 2), machine()).argv, {"--mca", "orte_keep_fqdn_hostnames", "1"}));
}

TEST(LaunchPlan, WarnsOfTensorGroupsAcrossHosts) {
  LaunchRequest one = request({{{"node1", 1}, {"node2", 3}}, "--host"}, 4);
  one.tensor_ranks = 2;
  EXPECT_EQ(plan_launch(one, machine()).remarks.size(), 2u);
}

TEST(LaunchPlan, TheUsersMcaParametersWin) {
  MachineFacts facts = machine();
  facts.environment["OMPI_MCA_pml"] = "ucx";
  const LaunchPlan plan = plan_launch(request(here, 2), facts);
  EXPECT_FALSE(has(plan.argv, {"--mca", "pml"}));
  ASSERT_EQ(plan.remarks.size(), 1u);
  EXPECT_EQ(plan.remarks[0], "OMPI_MCA_pml=ucx of the environment is kept (launch would use 'ob1')");
}

TEST(LaunchPlan, SlurmBindingIsRemoved) {
  MachineFacts facts = machine();
  facts.environment["SLURM_CPU_BIND_TYPE"] = "mask";
  EXPECT_EQ(plan_launch(request(here, 2), facts).removed, (std::vector<std::string>{"SLURM_CPU_BIND_TYPE"}));
}

// LA-04: the interface reaches MPI and NCCL; an absent one is refused with the real ones.
TEST(LaunchPlan, Interface) {
  LaunchRequest one = request(two_hosts, 4);
  one.interface = "eth0";
  const LaunchPlan plan = plan_launch(one, machine());
  EXPECT_TRUE(has(plan.argv, {"--mca", "btl_tcp_if_include", "10.1.2.0/24"}));
  EXPECT_TRUE(has(plan.argv, {"--mca", "oob_tcp_if_include", "10.1.2.0/24"}));
  EXPECT_TRUE(has(plan.argv, {"-x", "NCCL_SOCKET_IFNAME"}));
  EXPECT_EQ(plan.environment.at("NCCL_SOCKET_IFNAME"), "=eth0");
  one.interface = "eth9";
  EXPECT_EQ(
      refusal(one, machine(), 64),
      "no network interface 'eth9'; did you mean 'eth0'? This machine has lo (127.0.0.0/8), eth0 (10.1.2.0/24)");
}

TEST(LaunchPlan, RefusesOtherMpis) {
  MachineFacts facts = machine();
  facts.mpirun = "";
  EXPECT_NE(refusal(request(here, 2), facts, 10).find("not in PATH"), std::string::npos);
  for (const char* version : {"HYDRA build details:\n", "mpirun (Open MPI) 5.0.3\n", "", "Intel(R) MPI Library"}) {
    facts = machine();
    facts.mpirun_version = version;
    EXPECT_NE(refusal(request(here, 2), facts, 10).find("speaks Open MPI 4.1 only"), std::string::npos) << version;
  }
}

// LA-06: every variable once, by name; the values only in the environment.
TEST(LaunchPlan, EnvironmentOptions) {
  LaunchRequest one = request(here, 2);
  one.environment_options = {"SPACED=a b=c", "EMPTY=", "HOME", "NCCL_DEBUG=WARN", "SPACED=x y=z"};
  const LaunchPlan plan = plan_launch(one, machine());
  for (const char* name : {"SPACED", "EMPTY", "HOME", "NCCL_DEBUG"}) {
    EXPECT_EQ(std::count(plan.argv.begin(), plan.argv.end(), name), 1) << name;
  }
  EXPECT_EQ(plan.environment.at("SPACED"), "x y=z");
  EXPECT_EQ(plan.environment.at("EMPTY"), "");
  EXPECT_EQ(plan.environment.at("HOME"), "/root");
  EXPECT_EQ(plan.environment.at("NCCL_DEBUG"), "WARN");
  one.environment_options = {"A B=c", "=x", "NOTSET", "1X=2"};
  EXPECT_EQ(refusal(one, machine(), 64),
            "the variables for the ranks cannot be used:\n"
            "  --env 'A B=c': 'A B' is not a variable name (letters, digits, '_')\n"
            "  --env '=x': '' is not a variable name (letters, digits, '_')\n"
            "  --env NOTSET: not set here; give NOTSET=VALUE\n"
            "  --env '1X=2': '1X' is not a variable name (letters, digits, '_')");
}

TEST(LaunchPlan, DryRunIsAScriptWithoutSecrets) {
  LaunchRequest one = request(here, 2);
  one.environment_options = {"SPACED=it's a=b", "MY_TOKEN=hush"};
  const std::string text = dry_run_text(plan_launch(one, machine()), machine().environment);
  EXPECT_NE(text.find("export SPACED='it'\\''s a=b'\n"), std::string::npos);
  EXPECT_NE(text.find("export NCCL_DEBUG=INFO\n"), std::string::npos);
  EXPECT_NE(text.find("# export MY_TOKEN=(hidden)\n"), std::string::npos);
  EXPECT_EQ(text.find("hush"), std::string::npos);
  EXPECT_NE(text.find(" rank-exec -- prog 'a b'\n"), std::string::npos);
}

TEST(LaunchPlan, QuotesForTheShell) {
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a-b_c/d:e=f,g"), "a-b_c/d:e=f,g");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("$x;`y`"), "'$x;`y`'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace drivetrain
