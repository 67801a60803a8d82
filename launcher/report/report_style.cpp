#include "launcher/report/report_html.h"

namespace drivetrain {

// Hues after Okabe and Ito (Color Universal Design, 2008): computing is blue and green, waiting vermilion, transferring
// orange, data purple. Waiting is hatched besides, so that it shows without colour.
const char* report_style() {
  return R"css(
:root{color-scheme:light dark;--ground:#f5f6f8;--card:#fff;--ink:#1b2430;--soft:#5a6675;--rule:#dfe3e8;--accent:#0072b2;
--bad:#b34700;--bad-soft:#fdf0e6;--good:#00724f;--good-soft:#e7f5ef;--map:#eceff3;--on-bar:#10151b}
@media (prefers-color-scheme:dark){:root{--ground:#11161c;--card:#1a2129;--ink:#e6ebf1;--soft:#98a5b4;--rule:#2c3642;
--accent:#56b4e9;--bad:#ff9d5c;--bad-soft:#33241a;--good:#4fd1a5;--good-soft:#16302a;--map:#252e38}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1160px;margin:0 auto;padding:28px 20px 60px}
header p{margin:0}
h1{font-size:15px;font-weight:600;color:var(--soft);margin:0 0 10px;letter-spacing:.02em}
h2{font-size:17px;margin:0 0 4px}
h3{font-size:15px;margin:0}
.answer{font-size:22px;line-height:1.4;font-weight:600;margin:0;overflow-wrap:anywhere}
.answer-card{border-left:6px solid var(--good)}
.answer-card.bad{border-left-color:var(--bad)}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:18px 20px;margin:0 0 16px}
.note{color:var(--soft);margin:0 0 12px;max-width:80ch}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0 0 16px}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 16px}
.tile dt{color:var(--soft);font-size:13px}.tile dd{margin:0;font-size:22px;font-weight:600}
.state{display:inline-block;padding:1px 10px;border-radius:12px;font-size:13px;font-weight:600;margin-left:8px;
background:var(--good-soft);color:var(--good)}
.state.bad{background:var(--bad-soft);color:var(--bad)}
.verdict{border:1px solid var(--rule);border-left:6px solid var(--bad);border-radius:8px;padding:12px 16px;margin:12px 0 0}
.verdict p{margin:6px 0 0}
.verdict ul{margin:6px 0 0;padding-left:20px;color:var(--soft)}
.cost{float:right;font-weight:600;color:var(--bad);margin-left:16px}
.do{font-weight:600}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:16px}
.pair>section{min-width:0}
@media (max-width:900px){.pair{grid-template-columns:1fr}.cost{float:none;display:block;margin:0}}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;margin:10px 0 0;padding:0;list-style:none;font-size:13px;color:var(--soft)}
.legend svg{display:inline-block;width:14px;height:14px;vertical-align:-2px;margin-right:6px}
svg{display:block;width:100%;height:auto}
.scroll{overflow-x:auto}
.matrix svg{width:auto;max-width:100%;max-height:560px}
table{border-collapse:collapse;width:100%;font-size:13px}
th,td{padding:4px 8px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th{color:var(--soft);font-weight:600}
th:first-child,td:first-child{text-align:left}
td.text,th.text{text-align:left;white-space:normal}
details{margin-top:12px}summary{cursor:pointer;color:var(--accent)}
summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
ul.plain{margin:0;padding-left:20px}
footer{color:var(--soft);font-size:13px}
.label{font-size:12px;fill:var(--ink)}.small{font-size:11px;fill:var(--soft)}
.on-bar{font-size:11px;fill:var(--on-bar);paint-order:stroke;stroke:#fff;stroke-opacity:.55;stroke-width:3px}.on-map{font-size:12px;fill:var(--ink)}
.rule{stroke:var(--rule);stroke-width:1}
.map-ground{fill:var(--map)}.late{fill:#d55e00}.early{fill:#0072b2}
.w-peak{fill:var(--soft)}.w-loss{fill:#e69f00}.w-waiting{fill:#d55e00}.w-achieved{fill:#009e73}
.curve-a,.curve-c{fill:none;stroke-width:2;stroke-linejoin:round}
.curve-a{stroke:#0072b2}.curve-c{stroke:#009e73}.dot-b{fill:#d55e00}
@media (prefers-color-scheme:dark){.curve-a{stroke:#56b4e9}.curve-c{stroke:#3ecf9f}}
.c-data_wait{fill:#cc79a7}.c-copy{fill:#e5b8d0}
.c-forward{fill:#56b4e9}.c-backward{fill:#3a93cf}.c-recompute{fill:#8fb9d8}.c-optimizer{fill:#2fb88d}
.c-tp_wait{fill:url(#hatch-tp)}.c-dp_wait{fill:url(#hatch-dp)}.c-world_wait{fill:url(#hatch-world)}
.c-tp_transfer{fill:#c98b00}.c-dp_transfer{fill:#e69f00}.c-world_transfer{fill:#f4c45a}
.c-host_gap{fill:#9aa3ad}.c-checkpoint{fill:#f0e442}.c-eval{fill:#c9c13b}.c-other{fill:#717c88}.c-residual{fill:#c4cad1}
@media print{body{background:#fff;font-size:11pt}main{max-width:none;padding:0}.card,.tile,.verdict{break-inside:avoid}
details>*{display:block}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
)css";
}

}  // namespace drivetrain
