// SPDX-License-Identifier: Apache-2.0
// The page on a folder: its runs, filtered, and their figures on one axis.
"use strict";

Explorer.showFolder = (root, content) => {
  const { element, number } = Explorer;
  const MAX_ROWS = 150; // of the figure, which more would make slow
  const FIGURES = {
    paper: { words: "figure over the paper's", reference: 1, rows: paperRows },
    speedup: { words: "speedup over the baseline", reference: 1, rows: (run) => cellRows(run, "speedup") },
    median_ms: { words: "median iteration time, ms", reference: null, rows: (run) => cellRows(run, "median_ms") },
  };
  const HEADINGS = ["experiment", "testbed", "verdicts", "trials", "run", "pages"];
  const ALL = ["", "all"];
  const unique = (values) => [...new Set(values)].sort().map((each) => [each, each]);

  const parts = {
    experiment: Explorer.choice("Experiment", [ALL, ...unique(content.runs.map((run) => run.experiment))], show),
    testbed: Explorer.choice("Testbed", [ALL, ...unique(content.runs.map((run) => run.testbed))], show),
    verdict: Explorer.choice(
      "Verdict",
      [ALL, ...["pass", "fail", "inconclusive", "not measured"].map((word) => [word, word])],
      show,
    ),
    figure: Explorer.choice("Figure", Object.entries(FIGURES).map(([name, { words }]) => [name, words]), show),
  };
  const value = (name) => parts[name][1].value;
  parts.figure[1].value = Object.keys(FIGURES).find((name) => content.runs.some((run) => FIGURES[name].rows(run).length)) ?? "paper";
  const [runs, axis] = [element("div"), element("div")];
  root.append(
    element("h1", {}, "Runs"),
    element("p", { class: "lead" }, `${content.runs.length} runs in ${content.folder}`),
    element("p", { class: "filters" }, parts.experiment[0], parts.testbed[0], parts.verdict[0]),
    runs,
    element("h2", {}, "Figures on one axis"),
    element("p", { class: "filters" }, parts.figure[0]),
    axis,
  );
  show();

  function show() {
    const matching = content.runs.filter(
      (run) =>
        (!value("experiment") || run.experiment === value("experiment")) &&
        (!value("testbed") || run.testbed === value("testbed")) &&
        (!value("verdict") || run.verdicts[value("verdict")]),
    );
    runs.replaceChildren(
      element("p", {}, `${matching.length} of ${content.runs.length} runs match.`),
      element("div", { class: "list" }, Explorer.table(HEADINGS, matching.map(listed))),
    );
    drawAxis(matching);
  }

  function listed(run) {
    const pages = run.pages.map(({ name, about, href }) => element("a", { href, title: about }, name));
    const verdicts = Object.entries(run.verdicts).map(([word, count]) => badge(word, `${count} ${word}`));
    return [
      run.experiment,
      element("span", { class: "run", title: run.stamp }, `${run.testbed}, ${run.stamp.split(":")[0]}`),
      element("span", {}, ...(verdicts.length ? verdicts : ["none expected"])),
      Object.entries(run.trials).map(([state, count]) => `${count} ${state}`).join(", "),
      element("span", { class: "run" }, run.run, ...(run.published ? [element("small", {}, " published")] : [])),
      element("span", { class: "pages" }, ...pages),
    ];
  }

  function badge(word, words = word) {
    return element("span", { class: `verdict ${word.replace(" ", "-")}` }, words);
  }

  function paperRows(run) {
    return run.expectations
      .filter((each) => each.paper && each.measured !== null && (!value("verdict") || each.verdict === value("verdict")))
      .map((each) => ({
        name: each.name,
        value: each.measured / each.paper,
        ends: each.ci95?.map((end) => end / each.paper),
        words: `${number(each.measured)} for ${number(each.paper)} ${each.unit}`,
        verdict: each.verdict,
      }));
  }

  function cellRows(run, figure) {
    return run.cells
      .filter((cell) => cell[figure] !== null)
      .map((cell) => ({
        name: `${cell.name}, ${cell.job}`,
        value: cell[figure],
        ends: cell[`${figure}_ci95`],
        words: number(cell[figure]),
        verdict: "",
      }));
  }

  // Draw each figure as a point with its 95 % interval, one below the other, all on one axis.
  function drawAxis(matching) {
    const { reference, rows } = FIGURES[value("figure")];
    const every = matching.flatMap((run) => rows(run).map((row) => ({ run, ...row })));
    const shown = every.slice(0, MAX_ROWS);
    if (!shown.length) {
      axis.replaceChildren(element("p", {}, "No run that matches has such a figure."));
      return;
    }
    const ends = shown.flatMap((row) => [row.value, ...(row.ends ?? [])]).filter((each) => each !== null);
    const [least, most] = [Math.min(...ends, 0), Math.max(...ends, reference ?? 0)];
    const at = (figure) => `${(100 * (figure - least)) / (most - least || 1)}%`;
    const ticks = Explorer.ticks(least, most);
    const scale = element("div", { class: "scale" }, ...ticks.map((tick) => element("span", { style: `left:${at(tick)}` }, number(tick))));
    let before = null;
    const lines = shown.map((row) => {
      const lead = before === row.run ? [] : [element("b", {}, `${row.run.experiment} on ${row.run.testbed}`)];
      before = row.run;
      const points = element("div", { class: "points" }, ...ticks.map((tick) => element("i", { style: `left:${at(tick)}` })));
      if (reference !== null) points.append(element("i", { class: "reference", style: `left:${at(reference)}` }));
      if (row.ends) {
        const width = `calc(${at(row.ends[1])} - ${at(row.ends[0])})`;
        points.append(element("span", { class: "interval", style: `left:${at(row.ends[0])};width:${width}` }));
      }
      points.append(element("span", { class: `point ${row.verdict.replace(" ", "-")}`, style: `left:${at(row.value)}` }));
      const words = element("small", {}, row.words, " ", ...(row.verdict ? [badge(row.verdict)] : []));
      return element("div", { class: "line" }, ...lead, element("span", { class: "name" }, row.name, " ", words), points);
    });
    const left = every.length - shown.length;
    axis.replaceChildren(
      element("p", {}, `${shown.length} figures; bars are 95 % intervals, where there are four repetitions.`
        + (left ? ` ${left} more are left out: choose an experiment or a testbed.` : "")),
      element("div", { class: "axis" }, element("div", { class: "line" }, element("span", { class: "name" }), scale), ...lines),
    );
  }
};

// Return about eight round numbers from `least` to `most`.
Explorer.ticks = (least, most) => {
  const raw = (most - least || 1) / 8;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
  const first = Math.ceil(least / step);
  return Array.from({ length: Math.floor(most / step) - first + 1 }, (_, place) => (first + place) * step);
};
