// What a person sees of a running training: one line per step that redraws itself on a terminal, plain lines elsewhere.
#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

namespace drivetrain {

struct ProgressPoint {
  std::int64_t step = 0, total = 0;
  double loss = 0, lr = 0, grad_norm = 0, tokens_per_s = 0;
  std::optional<double> mfu{};
  std::optional<double> left_s{};     // time to the end, when known
  std::optional<double> eval_loss{};  // when this step was evaluated
  std::string skipped_reason{};       // empty: the update was applied
};

class Progress {
 public:
  enum class Mode { kBar, kLines, kOff };
  // `every`: steps between plain lines; the last step, evaluations and skipped steps always get one. `columns`: a bar is
  // cut to the width of the terminal, since a line that wraps cannot be redrawn; 0: not cut. The stream outlives this
  // object.
  Progress(std::ostream& out, Mode mode, std::int64_t every, int columns = 0)
      : out_(out), mode_(mode), every_(every), columns_(columns) {}
  void show(const ProgressPoint& point);
  // Ends a bar's line, so that other output starts on a fresh one.
  void end_line();

 private:
  std::ostream& out_;
  Mode mode_;
  std::int64_t every_;
  int columns_;
  std::size_t drawn_ = 0;  // characters of the bar line on screen
};

// "auto": a bar on a terminal (columns > 0), lines elsewhere. Also "bar", "lines", "off".
Progress::Mode progress_mode(const std::string& wanted, int columns);
// "41s", "3m12s", "2h05m", "3d04h".
std::string duration_text(double seconds);
// "step 20/100, loss 2.3456, ..." without control characters.
std::string progress_text(const ProgressPoint& point);

}  // namespace drivetrain
