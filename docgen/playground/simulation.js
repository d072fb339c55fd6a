// SPDX-License-Identifier: Apache-2.0
// Two jobs on one link, computed by the fluid engine that engine.js holds (two_jobs.cpp).
"use strict";

// Number of iterations that each job completes. The second half counts as the steady state, as in
// roundabout/models/fluid/engine.py.
const ITERATIONS = 40;

// Return a promise of the function `simulate`.
async function loadEngine() {
  const bytes = Uint8Array.from(atob(ENGINE), (letter) => letter.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes);
  const engine = instance.exports;
  engine._initialize();

  // Compute two jobs, each with `computeMs`, `sendMs`, `weight` and `startMs`. Return an array for each job:
  // `iterations` ({startMs, sendMs, endMs} of each) and `linkShares` (the share of the link in each millisecond).
  return function simulate(jobs) {
    engine.clear();
    jobs.forEach((job, place) => engine.add_job(place, job.computeMs, job.sendMs, job.weight, job.startMs));
    engine.run(ITERATIONS);
    return jobs.map((_, place) => ({
      iterations: Array.from({ length: engine.completed(place) }, (_, number) => ({
        startMs: engine.start_ms(place, number),
        sendMs: engine.send_ms(place, number),
        endMs: engine.end_ms(place, number),
      })),
      linkShares: Array.from({ length: engine.milliseconds(place) }, (_, ms) => engine.link_share(place, ms)),
    }));
  };
}

// Return the mean time of a job's iterations in the steady state, ms.
function steadyMs(iterations) {
  const steady = iterations.slice(ITERATIONS / 2, ITERATIONS);
  return steady.reduce((sum, each) => sum + each.endMs - each.startMs, 0) / steady.length;
}
