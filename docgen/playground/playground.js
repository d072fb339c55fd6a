// SPDX-License-Identifier: Apache-2.0
// The playground: sliders for two jobs, their link over time, and Cassini's circle. It fills the element #playground.
"use strict";

(async function () {
  const SLIDERS = [
    { name: "weight", label: "Aggressiveness of job 1", min: 1, max: 4, step: 0.25, show: showWeight },
    { name: "computeMs0", label: "Job 1 computes", min: 50, max: 400, step: 10 },
    { name: "sendMs0", label: "Job 1 communicates", min: 20, max: 300, step: 10 },
    { name: "startMs", label: "Job 2 starts later by", min: 0, max: 400, step: 10 },
    { name: "computeMs1", label: "Job 2 computes", min: 50, max: 400, step: 10 },
    { name: "sendMs1", label: "Job 2 communicates", min: 20, max: 300, step: 10 },
  ];
  const FAIR = { weight: 1, startMs: 0, computeMs0: 150, sendMs0: 140, computeMs1: 150, sendMs1: 140 };
  const PRESETS = {
    Fair: FAIR,
    Unfair: { ...FAIR, weight: 2 },
    "Fair, started apart": { ...FAIR, startMs: 150 },
    "Too much communication": { ...FAIR, weight: 2, computeMs0: 100, computeMs1: 100, sendMs0: 200, sendMs1: 200 },
    "Other lengths": { ...FAIR, weight: 2, computeMs1: 250, sendMs1: 100 },
  };
  const SHOWN = 8; // iteration times, alone, of the longer job that the charts show
  const MAX_TURNS = 8; // iterations of a job on one circle; arcs of more are too short to see
  const PERIOD_ERROR = 0.01; // of iteration times on one circle, as in roundabout/models/cassini
  const COLORS = ["var(--job-1)", "var(--job-2)"];

  const root = document.getElementById("playground");
  const simulate = await loadEngine();
  const inputs = {};
  const parts = build();
  set(FAIR);
  new ResizeObserver(draw).observe(root);

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  function shape(name, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  // Put the sliders and empty places for the pictures into the page, and return these places.
  function build() {
    const presets = Object.entries(PRESETS).map(([name, values]) => {
      const button = element("button", { type: "button" }, name);
      button.addEventListener("click", () => set(values));
      return button;
    });
    const sliders = SLIDERS.map(({ name, label, min, max, step }) => {
      const input = element("input", { type: "range", min, max, step, "aria-label": label });
      const value = element("output");
      input.addEventListener("input", draw);
      inputs[name] = { input, value };
      return element("label", { class: name }, element("span", {}, label), value, input);
    });
    const places = {
      summary: element("p", { class: "summary", role: "status" }),
      link: element("div"),
      times: element("div"),
      circles: element("div", { class: "circles" }),
      note: element("p", { class: "note" }),
    };
    root.replaceChildren(
      element("div", { class: "presets" }, ...presets),
      sliders[0],
      element("div", { class: "sliders" }, ...sliders.slice(1)),
      places.summary,
      element("h3", {}, "The link over time"),
      places.link,
      element("h3", {}, "Iteration time, over the job's time alone"),
      places.times,
      element("h3", {}, "The circle: when each job communicates"),
      places.circles,
      places.note,
    );
    return places;
  }

  function set(values) {
    Object.entries(values).forEach(([name, value]) => (inputs[name].input.value = value));
    draw();
  }

  function showWeight(weight) {
    return `${weight} (${Math.round((100 * weight) / (weight + 1))} % of the shared link)`;
  }

  // Return the jobs that the sliders state, with this weight of job 1.
  function readJobs(weight) {
    const read = (name) => Number(inputs[name].input.value);
    return [
      { computeMs: read("computeMs0"), sendMs: read("sendMs0"), weight, startMs: 0 },
      { computeMs: read("computeMs1"), sendMs: read("sendMs1"), weight: 1, startMs: read("startMs") },
    ];
  }

  function draw() {
    for (const { name, show } of SLIDERS) {
      const value = Number(inputs[name].input.value);
      inputs[name].value.textContent = show ? show(value) : `${value} ms`;
    }
    const weight = Number(inputs.weight.input.value);
    const jobs = readJobs(weight);
    const aloneMs = jobs.map((job) => job.computeMs + job.sendMs);
    const fair = simulate(readJobs(1)).map((job, place) => steadyMs(job.iterations) / aloneMs[place]);
    const played = simulate(jobs);
    const now = played.map((job, place) => steadyMs(job.iterations) / aloneMs[place]);
    parts.summary.replaceChildren(...summarize(weight, fair, now));
    const untilMs = SHOWN * Math.max(...aloneMs);
    parts.link.replaceChildren(drawLink(played, untilMs));
    parts.times.replaceChildren(drawTimes(played, aloneMs, untilMs));
    drawCircles(played, aloneMs);
  }

  function summarize(weight, fair, now) {
    const times = (place) => {
      const colored = element("b", { style: `color: ${COLORS[place]}` }, `Job ${place + 1}: ${now[place].toFixed(2)}`);
      return [colored, ` times its time alone${weight > 1 ? ` (fair sharing: ${fair[place].toFixed(2)})` : ""}. `];
    };
    return [...times(0), ...times(1), judge(weight, fair, now)];
  }

  // Return a sentence that compares the jobs with fair sharing, or with their times alone.
  function judge(weight, fair, now) {
    const slow = now.filter((time) => time > 1.02).length;
    if (weight === 1) {
      return ["Both have the link for themselves.", "One is slowed down.", "Both are slowed down."][slow];
    }
    const faster = now.filter((time, place) => time < fair[place] * 0.98).length;
    const slower = now.filter((time, place) => time > fair[place] * 1.02).length;
    if (faster === 2) return "Both are faster than with fair sharing.";
    if (slower) return faster ? "Only one gains; the other loses." : "Unfair sharing helps neither.";
    return faster ? "One is faster, and the other as fast as with fair sharing." : "Fair sharing is as fast.";
  }

  // Return an empty chart and functions that convert ms and values up to `top` to places on it.
  function makeChart(height, untilMs, bottom, top, label) {
    const width = Math.max(root.clientWidth, 280);
    const left = 44;
    const x = (ms) => left + ((width - left - 8) * ms) / untilMs;
    const y = (value) => 8 + ((height - 30) * (top - value)) / (top - bottom);
    const chart = shape("svg", { width, height, role: "img", "aria-label": label });
    const stepMs = untilMs > 2500 ? 1000 : 500;
    for (let ms = 0; ms <= untilMs; ms += stepMs) {
      chart.append(shape("text", { x: x(ms), y: height - 6, class: "axis middle" }, `${ms / 1000} s`));
    }
    return { chart, x, y };
  }

  function addGridLine({ chart, x, y }, value, label, untilMs) {
    chart.append(
      shape("line", { x1: x(0), x2: x(untilMs), y1: y(value), y2: y(value), class: "grid" }),
      shape("text", { x: x(0) - 6, y: y(value) + 4, class: "axis end" }, label),
    );
  }

  // Draw the shares of the link that the jobs use, one above the other.
  function drawLink(played, untilMs) {
    const axes = makeChart(150, untilMs, 0, 1, "Shares of the link that both jobs use, over time");
    const { chart, x, y } = axes;
    const below = new Array(untilMs).fill(0);
    played.forEach((job, place) => {
      const upper = below.map((share, ms) => share + job.linkShares[ms]);
      const edge = (shares) => shares.flatMap((share, ms) => [`${x(ms)},${y(share)}`, `${x(ms + 1)},${y(share)}`]);
      const points = [...edge(upper), ...edge(below).reverse()].join(" ");
      chart.append(shape("polygon", { points, fill: COLORS[place] }));
      upper.forEach((share, ms) => (below[ms] = share));
    });
    [0, 0.5, 1].forEach((share) => addGridLine(axes, share, `${100 * share} %`, untilMs));
    return chart;
  }

  // Draw a line for each iteration, from its start to its end, at its time over the job's time alone.
  function drawTimes(played, aloneMs, untilMs) {
    const ratios = played.map((job, place) =>
      job.iterations.map((each) => ({ ...each, ratio: (each.endMs - each.startMs) / aloneMs[place] })),
    );
    const top = Math.max(1.6, ...ratios.flat().map((each) => each.ratio)) + 0.1;
    const axes = makeChart(130, untilMs, 0.95, top, "Iteration times over the jobs' times alone");
    const { chart, x, y } = axes;
    for (let ratio = 1; ratio < top; ratio += 0.25) {
      addGridLine(axes, ratio, ratio === 1 ? "alone" : ratio % 0.5 ? "" : `${ratio} ×`, untilMs);
    }
    ratios.forEach((iterations, place) => {
      for (const { startMs, endMs, ratio } of iterations.filter((each) => each.startMs < untilMs)) {
        const height = y(ratio) + (place ? 1.5 : -1.5); // lines of equal jobs stand beside each other
        const ends = { x1: x(startMs) + 1, x2: x(Math.min(endMs, untilMs)) - 1, y1: height, y2: height };
        chart.append(shape("line", { ...ends, stroke: COLORS[place], "stroke-width": 3 }));
      }
    });
    return chart;
  }

  // Return the number of iterations of job 1 after which both jobs begin together again, or 0 if it is too large.
  function countTurns([one, other]) {
    for (let turns = 1; turns <= MAX_TURNS; turns++) {
      const others = Math.round((turns * one) / other);
      if (others && others <= MAX_TURNS && Math.abs(turns * one - others * other) <= PERIOD_ERROR * turns * one) {
        return turns;
      }
    }
    return 0;
  }

  function drawCircles(played, aloneMs) {
    const turns = countTurns(aloneMs);
    const count = turns || Math.ceil(aloneMs[1] / aloneMs[0]);
    const iterations = played[0].iterations;
    const endMs = Math.min(...played.map((job) => job.iterations.at(-1).endMs));
    const ended = iterations.findLastIndex((each) => each.endMs <= endMs) + 1;
    const first = iterations.findIndex((each) => each.startMs >= played[1].iterations[0].startMs);
    parts.circles.replaceChildren(
      drawCircle(played, iterations[first].startMs, iterations[first + count - 1].endMs, "at first"),
      drawCircle(played, iterations[ended - count].startMs, iterations[ended - 1].endMs, "in the end"),
    );
    const iterationsText = count === 1 ? "one iteration" : `${count} iterations`;
    parts.note.textContent =
      `A turn is ${iterationsText} of job 1, clockwise from the top. Arcs are times of communication: job 1 outside, ` +
      "job 2 inside; red is where both communicate. " +
      (turns ? "" : "The iteration times have no small common multiple, so each turn looks different.");
  }

  // Draw the communication of both jobs from one instant to another as arcs of one turn.
  function drawCircle(played, fromMs, toMs, title) {
    const phases = played.map((job) =>
      job.iterations
        .map((each) => [Math.max(each.sendMs, fromMs), Math.min(each.endMs, toMs)])
        .filter(([begin, end]) => begin < end),
    );
    const both = phases[0]
      .flatMap(([begin, end]) => phases[1].map((other) => [Math.max(begin, other[0]), Math.min(end, other[1])]))
      .filter(([begin, end]) => end - begin > 1e-6);
    const arc = (radius, [begin, end], attributes) => {
      const turn = (ms) => (2 * Math.PI * (ms - fromMs)) / (toMs - fromMs);
      const point = (angle) => `${radius * Math.sin(angle)} ${-radius * Math.cos(angle)}`;
      const [first, last] = [turn(begin), Math.min(turn(end), turn(begin) + 2 * Math.PI - 1e-3)];
      const isLarge = last - first > Math.PI ? 1 : 0;
      return shape("path", { d: `M ${point(first)} A ${radius} ${radius} 0 ${isLarge} 1 ${point(last)}`, ...attributes });
    };
    const rings = [86, 64];
    return shape(
      "svg",
      { viewBox: "-110 -110 220 240", role: "img", "aria-label": `Communication on a circle, ${title}` },
      ...rings.map((r) => shape("circle", { r, class: "ring" })),
      ...both.map((phase) => arc(104, phase, { class: "both" })),
      ...phases.flatMap((own, place) =>
        own.map((phase) => arc(rings[place], phase, { class: "arc", stroke: COLORS[place] })),
      ),
      shape("line", { x1: 0, x2: 0, y1: -98, y2: -52, class: "begin" }),
      shape("text", { y: 0, class: "middle" }, `${Math.round(toMs - fromMs)} ms`),
      shape("text", { y: 126, class: "middle" }, title),
    );
  }
})();
