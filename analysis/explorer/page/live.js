// SPDX-License-Identifier: Apache-2.0
// The part of a page on a run that goes on: its progress, and the trial under way over time.
"use strict";

Explorer.showLive = (root, live, colors) => {
  const { element, number, table } = Explorer;
  const DASH = "–";
  const LINK = ["link", "load, Gbit/s", "line rate, Gbit/s", "marks/s", "longest queue, kB"];
  const left = live.time_left_s > 90 ? `${Math.round(live.time_left_s / 60)} min` : `${Math.round(live.time_left_s)} s`;
  const attempt = live.trial?.attempt > 1 ? `, attempt ${live.trial.attempt}` : "";
  const rows = (entries, cells) => Object.entries(entries).map(([name, each]) => [name, ...cells(each)]);
  const tables = [
    table(["job", "iterations", "last, ms", "mean, ms"], rows(live.jobs, (job) => [
      `${job.done} of ${job.iterations}`, job.done ? number(job.last_ms) : DASH, job.done ? number(job.mean_ms) : DASH,
    ])),
    ...(Object.keys(live.links).length ? [table(LINK, rows(live.links, (link) => [
      number(link.gbps), number(link.line_rate_gbps), link.marks_per_s === null ? DASH : number(link.marks_per_s),
      link.backlog_bytes === null ? DASH : number(link.backlog_bytes / 1e3),
    ]))] : [element("p", {}, "Links have no load yet; models report it when a trial ends.")]),
  ];
  root.append(
    element("h2", {}, "Going on"),
    element("p", {}, `${live.done} of ${live.trials} trials are done; about ${left} left. Now: ${live.what}${attempt}`
      + `${live.phase ? `, ${live.phase}` : ""}. This page loads itself anew every few seconds while the run goes on.`),
    ...tables,
  );
  const at = live.samples.map((sample) => sample.at_ms);
  if (at.length < 2 || at[at.length - 1] === 0) return;
  const timeline = new Explorer.Timeline(at[at.length - 1], () => {});
  const courses = [
    ["Load of links, Gbit/s", "gbps"],
    ["Last iteration of each job, ms", "last_ms"],
  ];
  root.append(element("p", {}, timeline.buttons()));
  courses.forEach(([title, field]) => {
    const names = [...new Set(live.samples.flatMap((sample) => Object.keys(sample[field])))];
    if (!names.length) return;
    const parent = element("div", { class: "chart" });
    root.append(element("h3", {}, title), parent);
    const lines = names.map((name, row) => ({
      label: name,
      color: colors[row % colors.length],
      values: live.samples.map((sample) => sample[field][name] ?? null),
    }));
    timeline.lines(parent, at, lines);
  });
};
