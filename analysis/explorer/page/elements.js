// SPDX-License-Identifier: Apache-2.0
// Elements of the page, and figures as text.
"use strict";

const Explorer = {};

(function () {
  function fill(made, attributes, children) {
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  Explorer.element = (name, attributes = {}, ...children) =>
    fill(document.createElement(name), attributes, children);

  Explorer.shape = (name, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

  // Return a button that calls `act`.
  Explorer.button = (words, label, act) => {
    const made = Explorer.element("button", { type: "button", "aria-label": label, title: label }, words);
    made.addEventListener("click", act);
    return made;
  };

  // Return a labeled list of choices, each a value with its words, and the list itself.
  Explorer.choice = (label, options, act) => {
    const select = Explorer.element("select", { "aria-label": label });
    options.forEach(([value, words]) => select.append(Explorer.element("option", { value }, words)));
    select.addEventListener("change", act);
    return [Explorer.element("label", {}, `${label} `, select), select];
  };

  // Return a table that scrolls on a narrow page. Cells are strings or elements.
  Explorer.table = (headings, rows) => {
    const head = Explorer.element("tr", {}, ...headings.map((each) => Explorer.element("th", { scope: "col" }, each)));
    const body = rows.map((row) => Explorer.element("tr", {}, ...row.map((each) => Explorer.element("td", {}, each))));
    const table = Explorer.element(
      "table", {}, Explorer.element("thead", {}, head), Explorer.element("tbody", {}, ...body),
    );
    return Explorer.element("div", { class: "wide" }, table);
  };

  // Return a number with three significant digits, or more where it has more before the point.
  Explorer.number = (value) => {
    if (value === null || value === undefined) return "unknown";
    if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
  };

  Explorer.percent = (share) => `${Math.round(100 * share)} %`;

  // Return the mean of the known values; null without any.
  Explorer.mean = (values) => {
    const known = values.filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  };
})();
