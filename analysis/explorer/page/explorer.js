// SPDX-License-Identifier: Apache-2.0
// Unpack the page's content, which is JSON, compressed by gzip, in base64, and show it.
"use strict";

(async function () {
  const packed = atob(document.getElementById("content").textContent);
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const content = JSON.parse(await new Response(unpacked).text());
  const root = document.getElementById("explorer");
  root.replaceChildren();
  (content.kind === "run" ? Explorer.showRun : Explorer.showFolder)(root, content);
  document.body.dataset.readyMs = Math.round(performance.now());
})();
