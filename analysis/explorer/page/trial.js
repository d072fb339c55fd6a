// SPDX-License-Identifier: Apache-2.0
// The page on a run: a trial over time, its topology, and one iteration.
"use strict";

Explorer.showRun = (root, content) => {
  const { element, number, percent, mean } = Explorer;
  const SHOWN_LINKS = 4; // that are drawn until others are chosen
  const SHOWN_WAYS = 12; // of the links that a job crosses
  const saved = new URLSearchParams(location.hash.slice(1)); // survives when `watch` loads the page anew
  let timeline = null;

  const [label, select] = Explorer.choice(
    "Trial",
    content.trials.map((trial, place) => [place, trial.state === "valid" ? trial.name : `${trial.name} (${trial.state})`]),
    () => showTrial(Number(select.value)),
  );
  const body = element("div");
  root.append(
    element("span", { class: `stamp ${content.nature}` }, content.stamp),
    element("h1", {}, content.experiment),
    element("p", { class: "lead" }, `Run ${content.run}`),
  );
  if (content.live) Explorer.showLive(root, content.live, content.colors);
  if (!content.trials.length) {
    root.append(element("p", {}, "No trial is done yet."));
    return;
  }
  root.append(...(content.live ? [element("h2", {}, "Trials that are done")] : []), element("p", {}, label), body, others());
  root.append(...limits());
  const busiest = content.trials.reduce((most, trial) => Math.max(most, trial.jobs.length), 0);
  const found = content.trials.findIndex((trial) => trial.key === saved.get("trial"));
  const first = found >= 0 ? found : content.trials.findIndex((trial) => trial.jobs.length === busiest);
  select.value = String(first);
  showTrial(first);

  function showTrial(number_) {
    timeline?.remove();
    const trial = content.trials[number_];
    const colors = trial.jobs.map((_, place) => content.colors[place % content.colors.length]);
    const range = saved.get("trial") === trial.key && saved.has("from") ? [saved.get("from"), saved.get("to")] : null;
    const drawn = [];
    timeline = new Explorer.Timeline(trial.duration_ms, () => {
      drawn.forEach((draw) => draw());
      saved.set("trial", trial.key);
      [["from", timeline.range[0]], ["to", timeline.range[1]]].forEach(([name, value]) => saved.set(name, value));
      history.replaceState(null, "", `#${saved}`);
    });
    body.replaceChildren();
    notes(trial);
    section("Phases of jobs", "Pale: computing. Solid: communicating. Click an iteration to see its figures below.");
    body.append(timeline.buttons());
    body.append(
      element("p", { class: "hint" }, "All charts share their time, ms since the first iteration began. Drag to zoom, "
        + "double-click for the whole trial; Ctrl and wheel zoom, Shift and wheel scroll."),
    );
    const pick = iteration(trial, colors);
    timeline.phases(place(), trial.jobs, colors, pick.show);
    chart("Rates of jobs, Gbit/s", trial, trial.jobs.map((job, row) => line(job.name, colors[row], job.gbps)));
    links(trial);
    chart("CNPs per window, of the senders of each job", trial,
      trial.jobs.map((job, row) => line(job.name, colors[row], job.cnps_per_window)));
    section("One iteration", "");
    body.append(pick.panel);
    section("Topology", "Means over the time that the charts show, where a cable's course is on this page; else over "
      + "the whole trial. Point at a cable for its figures.");
    const picture = place();
    const draw = () => picture.replaceChildren(Explorer.drawTopology(trial.topology, load(trial)));
    drawn.push(draw);
    if (range) timeline.show(...range.map(Number));
    draw();
    pick.show(0, 0, false);
  }

  function section(title, words) {
    body.append(element("h2", {}, title), ...(words ? [element("p", {}, words)] : []));
  }

  function place() {
    const made = element("div", { class: "chart" });
    body.append(made);
    return made;
  }

  function line(name, color, values) {
    return { label: name, color, values };
  }

  // Draw lines below a heading, unless no series has values.
  function chart(title, trial, series, into = body) {
    const known = series.filter((each) => each.values?.some((value) => value !== null));
    if (!known.length) return null;
    if (known.every((each) => each.values.every((value) => !value))) {
      into.append(element("h3", {}, title), element("p", { class: "hint" }, "None in this trial, of the lines chosen."));
      return null;
    }
    const parent = element("div", { class: "chart" });
    into.append(element("h3", {}, title), parent);
    const at = Array.from(known[0].values, (_, place) => place * trial.window_ms);
    return timeline.lines(parent, at, known);
  }

  // Say what the page leaves out of the trial, and what the run lacks.
  function notes(trial) {
    const cut = trial.jobs.filter((job) => job.count > job.iterations.length);
    const bare = trial.directions.filter((each) => each.gbps === null && each.mean_gbps).length;
    const said = [
      ...(trial.state === "valid" ? [] : [`This trial is ${trial.state}: ${trial.reason}.`]),
      `Rates, queues and counts are of windows of ${trial.window_ms} ms.`,
      ...(cut.length ? [`Only the first ${cut[0].iterations.length} iterations of ${cut.map((job) => job.name).join(", ")} are here.`] : []),
      ...(bare ? [`${bare} less loaded directions of links have their mean alone.`] : []),
      ...trial.missing,
    ];
    body.append(element("ul", { class: "notes" }, ...said.map((words) => element("li", {}, words))));
  }

  // Draw load, queue and marks of the chosen directions, with a list to choose from.
  function links(trial) {
    const known = trial.directions.filter((each) => each.gbps !== null);
    if (!known.length) return;
    section("Links", "");
    const chosen = new Set(known.slice(0, SHOWN_LINKS));
    const shown = element("div");
    const boxes = known.map((each) => {
      const box = element("input", { type: "checkbox" });
      box.checked = chosen.has(each);
      box.addEventListener("change", () => {
        if (box.checked) chosen.add(each);
        else chosen.delete(each);
        redraw();
      });
      return element("label", {}, box, ` ${name(each)} (${percent(each.mean_gbps / each.line_rate_gbps)})`);
    });
    const words = `Choose links (${known.length}, with their mean load of the line rate)`;
    body.append(element("details", { class: "links" }, element("summary", {}, words), element("div", {}, ...boxes)), shown);
    let own = [];
    const redraw = () => {
      timeline.charts = timeline.charts.filter((each) => !own.includes(each));
      own.forEach((each) => each.destroy());
      shown.replaceChildren();
      const some = known.filter((each) => chosen.has(each));
      const of = (field) => some.map((each, row) => line(name(each), content.colors[row % content.colors.length], each[field]));
      own = [
        chart("Load of links, Gbit/s", trial, of("gbps"), shown),
        chart("Longest queue in front of each, kB", trial, of("backlog_kb"), shown),
        chart("Marked packets per window", trial, of("marks"), shown),
      ].filter(Boolean);
    };
    redraw();
  }

  function name(direction) {
    return direction.link === direction.towards ? `to ${direction.towards}` : `${direction.link} to ${direction.towards}`;
  }

  // Return the mean load, Gbit/s, of each link and receiver over the visible time.
  function load(trial) {
    const [from, to] = timeline.range.map((at) => at / trial.window_ms);
    const whole = from <= 0 && timeline.range[1] >= trial.duration_ms;
    return (link, towards) => {
      const found = trial.directions.find((each) => each.link === link && each.towards === towards);
      if (!found) return null;
      if (whole || found.gbps === null) return found.mean_gbps;
      return mean(found.gbps.slice(Math.floor(from), Math.max(Math.ceil(to), Math.floor(from) + 1)));
    };
  }

  // Return the panel on one iteration, and a function that shows an iteration of a job in it.
  function iteration(trial, colors) {
    const figures = element("div");
    const [jobLabel, jobSelect] = Explorer.choice("Job", trial.jobs.map((job, row) => [row, job.name]), () => show(Number(jobSelect.value), 0));
    const numberInput = element("input", { type: "number", min: 0, "aria-label": "Iteration" });
    numberInput.addEventListener("change", () => {
      const job = trial.jobs[row];
      const at = job.iterations.indexOf(Number(numberInput.value));
      show(row, at < 0 ? 0 : at);
    });
    let [row, at] = [0, 0];
    const step = (by) => show(row, Math.min(Math.max(at + by, 0), trial.jobs[row].iterations.length - 1));
    const zoom = () => {
      const job = trial.jobs[row];
      const margin = (job.comm_end[at] - job.start[at]) / 2;
      timeline.show(job.start[at] - margin, job.comm_end[at] + margin);
    };
    const panel = element(
      "div",
      {},
      element("p", { class: "buttons" }, jobLabel, element("label", {}, "Iteration ", numberInput),
        Explorer.button("←", "Previous iteration", () => step(-1)),
        Explorer.button("→", "Next iteration", () => step(1)),
        Explorer.button("zoom to it", "Show this iteration and its neighbors in the charts", zoom)),
      figures,
    );

    function show(row_, at_, marks = true) {
      [row, at] = [row_, at_];
      const job = trial.jobs[row];
      jobSelect.value = String(row);
      numberInput.value = String(job.iterations[at]);
      numberInput.max = String(job.iterations[job.iterations.length - 1]);
      const span = [job.start[at], job.comm_end[at]];
      if (marks) timeline.mark(span);
      const during = ([from, to]) => (values) =>
        values.slice(Math.floor(from / trial.window_ms), Math.max(Math.ceil(to / trial.window_ms), 1));
      const within = during(span);
      const always = during([job.start[0], job.comm_end[job.comm_end.length - 1]]);
      const usual = mean(job.iteration_ms);
      figures.replaceChildren(Explorer.table(["", "this iteration", "mean of the job"], [
        ["iteration time, ms", number(job.iteration_ms[at]), number(usual)],
        ["computing, ms", number(job.compute_end[at] - job.start[at]), number(mean(job.start.map((each, place) => job.compute_end[place] - each)))],
        ["communicating, ms", number(job.comm_end[at] - job.compute_end[at]), number(mean(job.compute_end.map((each, place) => job.comm_end[place] - each)))],
        ["rate of the first worker while it lasts, Gbit/s", number(mean(within(job.gbps))), number(mean(always(job.gbps)))],
        ["ECN marks", job.marks ? number(job.marks[at]) : "not measured", job.marks ? number(mean(job.marks)) : ""],
        ["CNPs", job.cnps ? number(job.cnps[at]) : "not measured", job.cnps ? number(mean(job.cnps)) : ""],
      ]), ...ways(trial, job, within));
    }
    return { panel, show };
  }

  // Return a table of the links that a job's packets cross, the busiest first, over an iteration's windows.
  function ways(trial, job, within) {
    const crossed = new Set(job.hops.map((hop) => hop.join(" ")));
    const known = trial.directions.filter((each) => each.gbps !== null && crossed.has(`${each.link} ${each.towards}`));
    if (!known.length) return [];
    const rows = known.slice(0, SHOWN_WAYS).map((each) => {
      const gbps = mean(within(each.gbps));
      const sum = each.marks && within(each.marks).reduce((total, count) => total + (count ?? 0), 0);
      return [
        name(each),
        gbps === null ? "unknown" : `${number(gbps)} (${percent(gbps / each.line_rate_gbps)})`,
        each.backlog_kb ? number(Math.max(...within(each.backlog_kb).map((kb) => kb ?? 0))) : "not measured",
        each.marks ? number(sum) : "not measured",
      ];
    });
    const left = known.length > rows.length ? `, ${known.length - rows.length} less busy ones left out` : "";
    return [
      element("h3", {}, `Links that the job crosses, in the windows of this iteration${left}`),
      Explorer.table(["link", "load, Gbit/s", "longest queue, kB", "marked packets of all jobs"], rows),
    ];
  }

  function others() {
    if (!content.others.length) return "";
    const rows = content.others.map((trial) => [trial.name, trial.state, element("code", {}, trial.key), trial.reason]);
    return element(
      "details",
      { class: "others" },
      element("summary", {}, `${rows.length} more trials of the run`),
      element("p", {}, "They are not on this page. ", element("code", {}, `roundabout explore ${content.run} --trial KEY`), " shows one."),
      Explorer.table(["trial", "state", "key", "reason"], rows),
    );
  }

  function limits() {
    if (!content.cannot.length) return [];
    const lines = content.cannot.map((words) => element("li", {}, words));
    return [element("h2", {}, "What this run cannot show"), element("ul", {}, ...lines)];
  }
};
