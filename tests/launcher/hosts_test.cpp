#include "launcher/hosts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kernels/error.h"

namespace drivetrain {
namespace {

std::string shown(const HostList& list) {
  std::string text;
  for (const HostSlots& host : list.hosts) {
    text += (text.empty() ? "" : " ") + host.name + ":" + std::to_string(host.slots);
  }
  return text;
}

std::string hosts_of(const HostRequest& request) {
  try {
    return shown(choose_hosts(request));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
}

std::string option(const std::string& text) {
  return hosts_of({.host_option = text});
}

class HostfileTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() / ("drivetrain_hosts_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove(file_); }
  std::string read(const std::string& text) {
    std::ofstream(file_) << text;
    return hosts_of({.hostfile = file_});
  }
  std::string file_;
};

TEST(Hosts, ReadsTheOption) {
  EXPECT_EQ(option("h1:2,h2:4"), "h1:2 h2:4");
  EXPECT_EQ(option("h1,h2"), "h1:0 h2:0");
  EXPECT_EQ(option("n[1-2,10]-ib:8,login.site.org:1"), "n1-ib:8 n2-ib:8 n10-ib:8 login.site.org:1");
}

TEST(Hosts, ReportsAllFaultsOfTheOption) {
  EXPECT_EQ(option("h1:2,h1:2,h 3:1,h4:x,h5:0,h6:,,n[3-1]:1"),
            "the hosts of --host cannot be used:\n"
            "  host 'h1' is listed twice\n"
            "  'h 3' is not a host name\n"
            "  'x' is not a number of slots (1 to 100000)\n"
            "  '0' is not a number of slots (1 to 100000)\n"
            "  'h6:' ends in ':'; write HOST:SLOTS\n"
            "  '' is not a host name\n"
            "  'n[3-1]' has a bad range '3-1'");
  EXPECT_EQ(option("h1:2,h2"),
            "the hosts of --host cannot be used:\n"
            "  some hosts have a number of slots and some have none; give it for all or for none");
}

TEST(Hosts, ExpandsSlurmLists) {
  EXPECT_EQ(expand_host_names("a"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(expand_host_names("n[08-10]"), (std::vector<std::string>{"n08", "n09", "n10"}));
  EXPECT_EQ(expand_host_names("r[1-2]n[1-2],x"), (std::vector<std::string>{"r1n1", "r1n2", "r2n1", "r2n2", "x"}));
  for (const char* bad : {"", "n[", "n[]", "n[a]", "n[1-", "n[1-2", "n[-1]", "n[1-99999999]", "n]", "-n", "a,,b",
                          "n[0-9][0-9][0-9][0-9][0-9][0-9]", "n[99999999999999999999]", "a;rm -rf b"}) {
    EXPECT_THROW(expand_host_names(bad), Error) << bad;
  }
}

TEST_F(HostfileTest, ReadsTheUsualForms) {
  EXPECT_EQ(read("# comment\nh1 slots=2\n\nh2 slots=4 max_slots=8 # more\nh3:1\n"), "h1:2 h2:4 h3:1");
  EXPECT_EQ(read("h1\nh2\r\n"), "h1:0 h2:0");
}

TEST_F(HostfileTest, ReportsAllFaultsWithTheirLines) {
  const std::string where = "  " + file_ + ":";
  EXPECT_EQ(read("h1 slots=2\nh1 slots=2\nh2 cores=4 slots=1\nh$ slots=1\n"),
            "the hosts of hostfile " + file_ + " cannot be used:\n" + where + "2: host 'h1' is listed twice\n" +
                where + "3: 'cores=4' is not understood; wants 'NAME slots=N'\n" + where +
                "4: 'h$' is not a host name");
  EXPECT_EQ(read("# none\n"), "the hosts of hostfile " + file_ + " cannot be used:\n  names no host");
  EXPECT_EQ(hosts_of({.hostfile = "/absent/hosts"}),
            "the hosts of hostfile /absent/hosts cannot be used:\n"
            "  '/absent/hosts' cannot be read; a hostfile that is named must exist");
}

TEST_F(HostfileTest, TheNearestSourceWins) {
  std::ofstream(file_) << "f1 slots=1\n";
  Environment environment;
  EXPECT_EQ(hosts_of({.environment = environment, .local_cores = 2}), "localhost:2");
  environment["K_MPI_JOB_ROLE"] = "launcher";
  environment["OMPI_MCA_orte_default_hostfile"] = file_;
  EXPECT_EQ(hosts_of({.environment = environment}), "f1:1");
  environment["SLURM_JOB_NODELIST"] = "s[1-3]";
  environment["SLURM_TASKS_PER_NODE"] = "2(x2),1";
  EXPECT_EQ(hosts_of({.environment = environment}), "s1:2 s2:2 s3:1");
  EXPECT_EQ(hosts_of({.host_option = "s2:2", .hostfile = file_, .environment = environment}), "s2:2");
  EXPECT_EQ(
      hosts_of({.hostfile = file_, .environment = environment}),
      "the hosts of hostfile " + file_ + " cannot be used:\n  host 'f1' is outside the Slurm allocation s[1-3]");
  environment["SLURM_TASKS_PER_NODE"] = "2(x2)";
  EXPECT_EQ(hosts_of({.environment = environment}),
            "the hosts of the Slurm allocation cannot be used:\n"
            "  SLURM_TASKS_PER_NODE is '2(x2)', which does not fit 3 nodes");
}

TEST(Hosts, PlacesEveryRank) {
  const HostList slots{{{"a", 2}, {"b", 4}}, ""};
  EXPECT_EQ(place_ranks(slots, 1), (std::vector<int>{1, 0}));
  EXPECT_EQ(place_ranks(slots, 6), (std::vector<int>{2, 4}));
  EXPECT_EQ(place_ranks(slots, 9), (std::vector<int>{4, 5}));  // never fewer than asked for
  const HostList bare{{{"a", 0}, {"b", 0}}, ""};
  EXPECT_EQ(place_ranks(bare, 5), (std::vector<int>{3, 2}));
}

// LA-13: names that resolve late are waited for; names that never do end in a clear failure.
TEST(Hosts, WaitsForNamesWithABound) {
  const HostList list{{{"early", 1}, {"late", 1}, {"never", 1}}, "--host"};
  int asked = 0;
  const Resolver resolver = [&](const std::string& name) {
    return name == "early" || (name == "late" && ++asked > 1);
  };
  std::vector<std::string> progress;
  const auto start = std::chrono::steady_clock::now();
  try {
    wait_for_names(list, std::chrono::milliseconds(1500), resolver,
                   [&](const auto& line) { progress.push_back(line); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 11);
    EXPECT_EQ(
        std::string(error.what()),
        "these hosts do not resolve to an address after 1 s: never; check the names of --host or wait longer with "
        "--wait-hosts SECONDS");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  ASSERT_EQ(progress.size(), 2u);
  EXPECT_EQ(progress[0], "waiting for the address of late, never (0 s)");
  EXPECT_EQ(progress[1], "waiting for the address of never (1 s)");
  const HostList good{{{"early", 1}, {"late", 1}}, ""};
  wait_for_names(good, std::chrono::milliseconds(0), resolver, [](const auto&) { FAIL(); });
}

}  // namespace
}  // namespace drivetrain
