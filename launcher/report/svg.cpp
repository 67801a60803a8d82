#include "launcher/report/svg.h"

#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// A tenth of a pixel, without ".0".
std::string px(double value) {
  std::string text = fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string at(const char* name, double value) {
  return std::string(" ") + name + "=\"" + px(value) + "\"";
}

std::string closed(const char* element, const std::string& tip) {
  return tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title></" + element + ">\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
          result += "\xEF\xBF\xBD";
        else
          result += c;
    }
  }
  return result;
}

Svg::Svg(double width, double height, const std::string& label) {
  out_ = "<svg viewBox=\"0 0 " + px(width) + " " + px(height) + "\" role=\"img\" aria-label=\"" + escaped(label) +
         "\" xmlns=\"http://www.w3.org/2000/svg\">\n";
}

void Svg::rect(double x, double y, double width, double height, const std::string& css, const std::string& tip,
               double opacity) {
  out_ += "<rect" + at("x", x) + at("y", y) + at("width", width) + at("height", height) + " class=\"" + css + "\"";
  if (opacity < 1) out_ += " fill-opacity=\"" + fixed(opacity, 2) + "\"";
  out_ += closed("rect", tip);
}

void Svg::text(double x, double y, const std::string& text, const std::string& css, Anchor anchor) {
  out_ += "<text" + at("x", x) + at("y", y) + " class=\"" + css + "\"";
  if (anchor != Anchor::kStart)
    out_ += anchor == Anchor::kMiddle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  out_ += ">" + escaped(text) + "</text>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& css) {
  out_ += "<line" + at("x1", x1) + at("y1", y1) + at("x2", x2) + at("y2", y2) + " class=\"" + css + "\"/>\n";
}

void Svg::polyline(std::span<const std::pair<double, double>> points, const std::string& css) {
  out_ += "<polyline class=\"" + css + "\" points=\"";
  for (const auto& [x, y] : points) out_ += px(x) + "," + px(y) + " ";
  out_ += "\"/>\n";
}

void Svg::dot(double x, double y, double radius, const std::string& css, const std::string& tip) {
  out_ += "<circle" + at("cx", x) + at("cy", y) + at("r", radius) + " class=\"" + css + "\"" + closed("circle", tip);
}

}  // namespace drivetrain
