#!/usr/bin/env python3
"""Opens the HTML report of a made-up run in headless Chromium without a network and looks at what is there.

usage: report_page_test.py MADE_UP_REPORT   exits 77 (skipped) where there is no chromium
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SVG = "{http://www.w3.org/2000/svg}"


def visit(page: Path, profile: Path) -> tuple[str, str]:
    """The document after loading, and what the browser logged. Every host name resolves to nothing."""
    ran = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=400)
    return ran.stdout, ran.stderr


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)
        subprocess.run([sys.argv[1], cls.folder], check=True)
        cls.report = json.loads((cls.folder / "report.json").read_text())
        cls.source = (cls.folder / "report.html").read_text()
        cls.dom, cls.log = visit(cls.folder / "report.html", cls.folder / "profile")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_well_formed(self):
        """As XML too, but for the document type: no element is left open, no attribute unquoted."""
        for name in ("report.html", "markup.html"):
            text = (self.folder / name).read_text()
            self.assertTrue(text.startswith("<!DOCTYPE html>\n"))
            ET.fromstring(text.split("\n", 1)[1])

    def test_no_complaints_on_the_console(self):
        said = [line for line in self.log.splitlines() if "CONSOLE" in line]
        self.assertEqual(said, [])

    def test_loads_nothing(self):
        outside = re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)([^"'#][^"']*)|url\((?!#)([^)]*)\)|@import""", self.source)
        self.assertEqual(outside, [])
        self.assertNotIn("<script", self.source)

    def test_answer_comes_first(self):
        answer = re.search(r'<p class="answer">(.*?)</p>', self.dom, re.S)
        self.assertIn("rank 3", answer.group(1))
        self.assertLess(self.dom.index('class="answer"'), self.dom.index("<h2"))

    def test_every_section_is_there_with_its_picture(self):
        tree = ET.fromstring(self.source.split("\n", 1)[1])
        sections = {s.get("id"): s for s in tree.iter("section")}
        for name in ("classes", "lateness", "timeline", "waterfall", "waiting", "loss", "speed"):
            self.assertIn(name, sections)
            pictures = [s for s in sections[name].iter(SVG + "svg") if s.get("role") == "img"]
            self.assertEqual(len(pictures), 1, name)
            self.assertTrue(pictures[0].get("aria-label"))
            self.assertGreater(len(list(pictures[0])), 3, name)
        self.assertIn("verdicts", sections)
        self.assertIn("collectives", sections)

    def test_numbers_of_the_page_are_those_of_the_json(self):
        verdict = self.report["verdicts"][0]
        self.assertEqual(verdict["rank"], 3)
        self.assertIn(f'{verdict["cost_ms"]:.1f} ms per step', self.dom)
        for rank in self.report["ranks"]:
            self.assertIn(f'>{rank["waits_ms"]:.2f}</td>', self.dom)

    def test_bars_of_a_rank_fill_its_step(self):
        tree = ET.fromstring(self.source.split("\n", 1)[1])
        classes = next(s for s in tree.iter("section") if s.get("id") == "classes")
        picture = next(s for s in classes.iter(SVG + "svg") if s.get("role") == "img")
        rows = {}
        for rect in picture.iter(SVG + "rect"):
            rows.setdefault(rect.get("y"), []).append(float(rect.get("width")))
        longest = max(rank["step_ms"] for rank in self.report["ranks"])
        widths = [sum(row) for row in rows.values()]
        self.assertEqual(len(widths), 4)
        for width, rank in zip(widths, self.report["ranks"]):
            self.assertAlmostEqual(width, 890 * rank["step_ms"] / longest, delta=2)

    def test_markup_in_names_is_only_text(self):
        dom, log = visit(self.folder / "markup.html", self.folder / "profile")
        self.assertIn("<title>drivetrain: &lt;/title&gt;&lt;script&gt;", dom)
        self.assertNotIn("<img", dom)
        self.assertEqual([line for line in log.splitlines() if "CONSOLE" in line], [])


if __name__ == "__main__":
    if CHROMIUM is None:
        print("skipped: no chromium here (apt-get install chromium)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
