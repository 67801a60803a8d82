// The command line as a user meets it: help, versions, wrong words, and the page of the configuration keys.
#include <gtest/gtest.h>

#include "launcher/commands.h"
#include "tests/launcher/run_binary.h"

namespace drivetrain {
namespace {

TEST(CommandLine, HelpListsEveryCommandAndEachHasItsOwn) {
  const Scratch scratch;
  const Ran all = scratch.shell("$D --help");
  EXPECT_EQ(all.code, 0);
  for (const Command& command : commands()) {
    const bool listed = command.visibility == Visibility::kListed;
    EXPECT_EQ(all.says("\n  " + std::string(command.name) + " "), listed) << command.name;
    if (!listed) continue;
    const Ran one = scratch.shell("$D " + std::string(command.name) + " --help");
    EXPECT_EQ(one.code, 0) << command.name;
    EXPECT_TRUE(one.says("usage: drivetrain " + std::string(command.name))) << one.output;
    EXPECT_TRUE(one.says("examples:")) << one.output;
  }
}

TEST(CommandLine, WrongWordsAreNamedWithTheNearestRightOne) {
  const Scratch scratch;
  const Ran command = scratch.shell("$D luanch t.yaml");
  EXPECT_EQ(command.code, 64);
  EXPECT_TRUE(command.says("unknown command 'luanch'; did you mean 'launch'?")) << command.output;
  const Ran option = scratch.shell("$D launch t.yaml --dry-rum");
  EXPECT_EQ(option.code, 64);
  EXPECT_TRUE(option.says("unknown option '--dry-rum'; did you mean '--dry-run'?")) << option.output;
  EXPECT_EQ(scratch.shell("$D").code, 64);
  EXPECT_EQ(scratch.shell("$D launch").code, 64);
  EXPECT_EQ(scratch.shell("$D launch t.yaml other.yaml").code, 64);
  EXPECT_EQ(scratch.shell("$D launch t.yaml -n two").code, 64);
  EXPECT_EQ(scratch.shell("$D launch t.yaml -n 0").code, 64);
  EXPECT_EQ(scratch.shell("$D launch t.yaml --set steps").code, 64);
  EXPECT_EQ(scratch.shell("$D rank-exec true").code, 64);
}

TEST(CommandLine, TellsItsVersion) {
  const Ran ran = Scratch().shell("$D --version");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.output.find("drivetrain "), 0u);
}

TEST(CommandLine, ThePageOfTheConfigurationIsUpToDate) {
  const Ran ran = Scratch().shell("$D config-docs");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.output, file_text(std::filesystem::path(DRIVETRAIN_SOURCE_DIR) / "docs/config.md"))
      << "run: drivetrain config-docs > docs/config.md";
}

}  // namespace
}  // namespace drivetrain
