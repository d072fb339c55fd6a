// SPDX-License-Identifier: Apache-2.0
// What readers can do with a page: sort tables, hide jobs and variants, and read points of figures.

const textOf = (cell) => cell?.firstChild?.textContent.trim() ?? "";
const rowsOf = (table) => [...table.tBodies].flatMap((body) => [...body.rows]);
const isTitle = (row) => row.classList.contains("group");

// Give each row `words`, its cells' words; a blank name has the words of the row above, which it stands for.
function readWords(table) {
  let above = [];
  for (const row of rowsOf(table)) {
    if (isTitle(row)) above = [];
    row.blanks = [...row.cells].map((cell, at) => cell.classList.contains("name") && !textOf(cell) && !!above[at]);
    row.words = [...row.cells].map((cell, at) => (row.blanks[at] ? above[at] : textOf(cell)));
    if (!isTitle(row)) above = row.words;
  }
}

// Show a name again in each row that no longer stands below a row with the same name.
function showNames(table) {
  let above = [];
  for (const row of rowsOf(table).filter((row) => !row.classList.contains("hidden"))) {
    row.words.forEach((word, at) => {
      if (row.blanks[at]) row.cells[at].textContent = above[at] === word ? "" : word;
    });
    above = isTitle(row) ? [] : row.words;
  }
}

// Sort the rows below each title by a column at a click on its head: up, down, and as they were.
function makeSortable(table) {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  const original = rowsOf(table);
  if (original.length < 3) return;
  const figureOf = (word) => parseFloat(word.replace(/,/g, ""));
  const compare = (one, other) => {
    const figures = [figureOf(one), figureOf(other)];
    return figures.some(Number.isNaN) ? one.localeCompare(other) : figures[0] - figures[1];
  };
  const orders = ["none", "ascending", "descending"];
  const sort = (place) => {
    const order = orders[(orders.indexOf(heads[place].ariaSort ?? "none") + 1) % orders.length];
    heads.forEach((head, at) => (head.ariaSort = at === place ? order : "none"));
    let section = [];
    const flush = () => {
      const sign = { ascending: 1, descending: -1, none: 0 }[order];
      section.sort((one, other) => sign * compare(one.words[place] ?? "", other.words[place] ?? ""));
      section.forEach((row) => row.parentNode.append(row));
      section = [];
    };
    for (const row of original) {
      if (isTitle(row)) {
        flush();
        row.parentNode.append(row);
      } else section.push(row);
    }
    flush();
    showNames(table);
  };
  heads.forEach((head, place) => {
    head.tabIndex = 0;
    head.classList.add("sortable");
    head.onclick = () => sort(place);
    head.onkeydown = (event) => event.key === "Enter" && sort(place);
  });
}

// Make an image a part of the page, so that its lines can be hidden and its points have labels.
function inline(image) {
  const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (each) => each.charCodeAt(0));
  const svg = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml").documentElement;
  svg.querySelector("metadata")?.remove();
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", image.alt);
  const label = (element, words) => {
    const title = document.createElementNS(svg.namespaceURI, "title");
    title.textContent = words;
    element.append(title);
  };
  for (const drawn of svg.querySelectorAll("[id^='drawn|']")) {
    const [, series, part, ...points] = drawn.id.split("|");
    drawn.removeAttribute("id");
    drawn.names = [series, ...series.split(" "), ...part.split(", ")];
    const name = [series, part].filter(Boolean).join(", ");
    const marks = drawn.querySelectorAll("use");
    if (marks.length && marks.length === points.length) {
      marks.forEach((mark, at) => label(mark, [name, points[at]].filter(Boolean).join(": ")));
    } else if (name) label(drawn, name);
    drawn.classList.add("drawn");
  }
  image.replaceWith(svg);
}

// Hide rows of tables and lines of figures that have one of these names.
function hide(hidden) {
  for (const table of document.querySelectorAll("table")) {
    for (const row of rowsOf(table)) {
      const isNamed = (word, at) => row.cells[at].classList.contains("name") && hidden.has(word);
      row.classList.toggle("hidden", !isTitle(row) && row.words.some(isNamed));
    }
    showNames(table);
  }
  for (const drawn of document.querySelectorAll(".drawn")) {
    drawn.classList.toggle("hidden", drawn.names.some((name) => hidden.has(name)));
  }
}

document.querySelectorAll("figure img").forEach(inline);
document.querySelectorAll("table").forEach((table) => {
  readWords(table);
  makeSortable(table);
});
const toggles = document.querySelector(".toggles");
if (toggles) {
  const boxes = [...toggles.querySelectorAll("input")];
  toggles.hidden = false;
  toggles.onchange = () => hide(new Set(boxes.filter((box) => !box.checked).map((box) => box.value)));
}
