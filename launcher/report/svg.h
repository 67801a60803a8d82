// Writes one SVG picture for an HTML page. Colours come from the page's style sheet by class. Escapes all text.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace drivetrain {

// & < > " ' as entities; other control characters than newline and tab become U+FFFD.
std::string escaped(std::string_view text);

class Svg {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };

  // `label` is what a screen reader says.
  Svg(double width, double height, const std::string& label);

  // `tip`: shown under the mouse; empty: none. `opacity` below 1 lets the page shine through.
  void rect(double x, double y, double width, double height, const std::string& css, const std::string& tip = "",
            double opacity = 1);
  void text(double x, double y, const std::string& text, const std::string& css = "label",
            Anchor anchor = Anchor::kStart);
  void line(double x1, double y1, double x2, double y2, const std::string& css);
  void polyline(std::span<const std::pair<double, double>> points, const std::string& css);
  void dot(double x, double y, double radius, const std::string& css, const std::string& tip);

  std::string done() const { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace drivetrain
