// made_up_report FOLDER: writes report.html and report.json of a job of 4 ranks (dp 2 x tp 2) of which rank 3 reads its
// data 60 ms a step, and markup.html, whose names are full of markup.
#include <iostream>

#include "launcher/report/report_html.h"
#include "launcher/report/report_json.h"
#include "launcher/report/step_range.h"
#include "tests/launcher/report/made_up_run.h"

int main(int argc, char** argv) {
  using namespace drivetrain;
  if (argc != 2) {
    std::cerr << "usage: made_up_report FOLDER\n";
    return 1;
  }
  const std::filesystem::path out = argv[1];
  MadeUpRun run;
  run.job.steps = 80;
  run.job.tp = 2;
  run.job.faults = {{.kind = PlantedFault::Kind::kData, .rank = 3, .amount = 60}};
  run.hosts = {"node1", "node1", "node2", "node2"};
  const MadeUpFolder folder(run);
  RunReport report = make_report({folder.path().string()});
  report.run = "runs/made-up";
  write_whole_file(out / "report.html", report_html(report));
  write_whole_file(out / "report.json", report_json(report));
  report.run = "</title><script>document.title='broken'</script><img src=x onerror=alert(1)>";
  report.end.account = {"<style>*{display:none}</style>", "]]>\"'&amp;"};
  write_whole_file(out / "markup.html", report_html(report));
  return 0;
}
