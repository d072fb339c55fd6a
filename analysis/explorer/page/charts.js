// SPDX-License-Identifier: Apache-2.0
// Charts of a trial on one axis of time: a zoom of one is a zoom of all. Drawn by uPlot.
"use strict";

Explorer.Timeline = class {
  static STEP = 0.5; // share of the visible time by which buttons scroll
  static ZOOM = 2; // factor of a button's zoom
  static LEAST_MS = 1; // shortest visible time
  static HEIGHT = 150; // of a chart of lines, in CSS pixels
  static #count = 0;

  constructor(durationMs, onRange) {
    this.durationMs = durationMs;
    this.range = [0, durationMs];
    this.marked = null; // begin and end, ms, of the chosen iteration
    this.onRange = onRange;
    this.charts = [];
    Explorer.Timeline.#count += 1;
    this.key = `timeline ${Explorer.Timeline.#count}`; // of the charts whose cursors move together
  }

  // Show the time from `begin` to `end`, ms, in all charts.
  show(begin, end) {
    const width = Math.min(Math.max(end - begin, Explorer.Timeline.LEAST_MS), this.durationMs);
    const from = Math.min(Math.max(begin, 0), this.durationMs - width);
    this.range = [from, from + width];
    this.charts.forEach((chart) => chart.setScale("x", { min: from, max: from + width }));
    this.onRange();
  }

  zoom(factor, at = (this.range[0] + this.range[1]) / 2) {
    this.show(at - (at - this.range[0]) / factor, at + (this.range[1] - at) / factor);
  }

  scroll(share) {
    const by = share * (this.range[1] - this.range[0]);
    this.show(this.range[0] + by, this.range[1] + by);
  }

  mark(span) {
    this.marked = span;
    this.charts.forEach((chart) => chart.redraw(false));
  }

  remove() {
    this.charts.forEach((chart) => chart.destroy());
    this.charts = [];
  }

  buttons() {
    const { STEP, ZOOM } = Explorer.Timeline;
    return Explorer.element(
      "span",
      { class: "buttons" },
      Explorer.button("←", "Earlier", () => this.scroll(-STEP)),
      Explorer.button("→", "Later", () => this.scroll(STEP)),
      Explorer.button("+", "Zoom in", () => this.zoom(ZOOM)),
      Explorer.button("−", "Zoom out", () => this.zoom(1 / ZOOM)),
      Explorer.button("all", "Show the whole trial", () => this.show(0, this.durationMs)),
    );
  }

  // Draw lines into `parent` with a value for each window, whose beginnings are `at`, ms.
  lines(parent, at, series) {
    const values = series.map((each) => [...each.values, each.values[each.values.length - 1]]);
    const stepped = uPlot.paths.stepped({ align: 1 });
    return this.#add(parent, [[...at, this.durationMs], ...values], {
      height: Explorer.Timeline.HEIGHT,
      series: [
        { label: "ms", value: (_, value) => (value === null ? "–" : value.toFixed(0)) },
        ...series.map((each) => ({
          label: each.label,
          stroke: each.color,
          width: 1.5,
          paths: stepped,
          points: { show: false },
          value: (_, value) => (value === null ? "–" : Explorer.number(value)),
        })),
      ],
      axes: [Explorer.Timeline.#xAxis(), Explorer.Timeline.#yAxis()],
      scales: { x: this.#xScale(), y: { range: (_, _least, most) => [0, most > 0 ? most * 1.05 : 1] } },
    });
  }

  // Draw when each job computes (pale) and communicates; `onPick` gets the job's place and the iteration's place.
  phases(parent, jobs, colors, onPick) {
    const height = Math.max(24, Math.min(34, 360 / jobs.length)) * jobs.length + 50;
    const chart = this.#add(parent, [[0, this.durationMs], [null, null]], {
      height,
      series: [{}, { paths: () => null, points: { show: false } }],
      legend: { show: false },
      axes: [
        Explorer.Timeline.#xAxis(),
        {
          ...Explorer.Timeline.#yAxis(),
          splits: () => jobs.map((_, place) => place + 0.5),
          values: () => [...jobs].reverse().map((job) => job.name),
          grid: { show: false },
        },
      ],
      scales: { x: this.#xScale(), y: { range: [0, jobs.length] } },
      hooks: { draw: [(plot) => Explorer.Timeline.#drawPhases(plot, jobs, colors)] },
    });
    chart.over.addEventListener("click", (event) => {
      const row = Math.floor(jobs.length - chart.posToVal(event.offsetY, "y"));
      const at = chart.posToVal(event.offsetX, "x");
      if (!jobs[row] || chart.select.width > 2) return;
      const place = jobs[row].comm_end.findIndex((end) => end >= at);
      if (place >= 0 && jobs[row].start[place] <= at) onPick(row, place);
    });
  }

  static #drawPhases(plot, jobs, colors) {
    const { ctx } = plot;
    const [from, to] = [plot.scales.x.min, plot.scales.x.max];
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    jobs.forEach((job, row) => {
      const top = plot.valToPos(jobs.length - row - 0.14, "y", true);
      const height = plot.valToPos(jobs.length - row - 0.86, "y", true) - top;
      ctx.fillStyle = colors[row];
      job.start.forEach((start, place) => {
        if (job.comm_end[place] < from || start > to) return;
        const [left, middle, right] = [start, job.compute_end[place], job.comm_end[place]].map((each) =>
          plot.valToPos(each, "x", true),
        );
        ctx.globalAlpha = 0.25;
        ctx.fillRect(left, top, middle - left, height);
        ctx.globalAlpha = 1;
        ctx.fillRect(middle, top, Math.max(right - middle, 1), height);
      });
    });
    ctx.restore();
  }

  #add(parent, data, options) {
    const hooks = options.hooks ?? {};
    const chart = new uPlot(
      {
        width: parent.clientWidth,
        ...options,
        cursor: { sync: { key: this.key, setSeries: false, scales: ["x", null] }, drag: { x: true, y: false, dist: 4 } },
        hooks: {
          ...hooks,
          draw: [...(hooks.draw ?? []), (plot) => this.#drawMarked(plot)],
          setSelect: [(plot) => this.#zoomToSelection(plot)],
        },
      },
      data,
      parent,
    );
    chart.setScale("x", { min: this.range[0], max: this.range[1] });
    chart.over.addEventListener("dblclick", () => this.show(0, this.durationMs));
    chart.over.addEventListener("wheel", (event) => this.#turn(chart, event), { passive: false });
    new ResizeObserver(() => chart.setSize({ width: parent.clientWidth, height: options.height })).observe(parent);
    this.charts.push(chart);
    return chart;
  }

  #zoomToSelection(plot) {
    if (plot.select.width <= 2) return;
    const [from, to] = [plot.select.left, plot.select.left + plot.select.width];
    this.show(plot.posToVal(from, "x"), plot.posToVal(to, "x"));
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  // Zoom by a wheel with Ctrl, or by pinching; scroll by a horizontal wheel, or with Shift.
  #turn(chart, event) {
    if (event.ctrlKey) {
      this.zoom(Math.exp(-event.deltaY / 300), chart.posToVal(event.offsetX, "x"));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.scroll((event.deltaX || event.deltaY) / chart.over.clientWidth);
    } else {
      return;
    }
    event.preventDefault();
  }

  #drawMarked(plot) {
    if (!this.marked) return;
    const [left, right] = this.marked.map((each) => plot.valToPos(each, "x", true));
    const { ctx, bbox } = plot;
    const from = Math.max(left, bbox.left);
    const to = Math.min(right, bbox.left + bbox.width);
    if (to <= from) return;
    ctx.save();
    ctx.fillStyle = "rgba(90, 100, 110, 0.13)";
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.restore();
  }

  #xScale() {
    return { time: false, auto: false, range: (_, least, most) => [least ?? this.range[0], most ?? this.range[1]] };
  }

  static #xAxis() {
    return { stroke: "#5b646e", grid: { stroke: "#e4e7eb" }, ticks: { stroke: "#e4e7eb" }, size: 34 };
  }

  static #yAxis() {
    return { ...Explorer.Timeline.#xAxis(), size: 64 };
  }
};
