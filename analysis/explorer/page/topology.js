// SPDX-License-Identifier: Apache-2.0
// A topology's picture: hosts below, switches above by their distance from hosts, cables colored by their load.
"use strict";

(function () {
  const [LEVEL, MARGIN] = [110, 34]; // height of a level, and of what is above and below all of them
  const [LEAST_WIDTH, MOST_WIDTH] = [480, 960];
  const MAX_HOSTS = 128; // with more, hosts are left out of the picture
  const LEAST_APART = 27; // px between the nodes of a level; a narrower page scrolls
  const MAX_LABELS = 40; // of hosts or switches of a level, beside which labels overlap
  const { element, shape, number, percent } = Explorer;

  // Draw a topology; `loadOf(link, towards)` gives Gbit/s, or null if unknown.
  Explorer.drawTopology = (topology, loadOf) => {
    const shown = topology.hosts.length <= MAX_HOSTS;
    const { places, levels, width } = lay(topology, shown);
    const height = LEVEL * (levels.length - 1) + 2 * MARGIN;
    const picture = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "topology" });
    picture.style.minWidth = `${Math.min(LEAST_APART * Math.max(...levels.map((names) => names.length)), MOST_WIDTH)}px`;
    picture.style.maxWidth = `${1.4 * width}px`;
    picture.setAttribute("aria-label", `Topology ${topology.name} with the load of each cable`);
    const parallel = new Map();
    topology.links.forEach(([name, one, other, rate]) => {
      if (!places.has(one) || !places.has(other)) return;
      const pair = [one, other].sort().join(" ");
      const earlier = parallel.get(pair) ?? 0;
      parallel.set(pair, earlier + 1);
      const ends = [places.get(one), places.get(other)];
      picture.append(cable(name, [one, other], ends, rate, loadOf, earlier));
    });
    levels.forEach((names, level) => names.forEach((name) => picture.append(node(name, places.get(name), level, names, shown))));
    return element(
      "div",
      {},
      element("div", { class: "wide" }, picture),
      legend(),
      ...(shown ? [] : [element("p", {}, `${topology.hosts.length} hosts and their cables are left out.`)]),
    );
  };

  // Return the place of each node, and the names of each level's nodes: hosts, then switches by distance from hosts.
  function lay(topology, shown) {
    const neighbors = new Map([...topology.hosts, ...topology.switches].map((name) => [name, []]));
    topology.links.forEach(([, one, other]) => {
      neighbors.get(one).push(other);
      neighbors.get(other).push(one);
    });
    const distance = new Map(topology.hosts.map((host) => [host, 0]));
    const queue = [...topology.hosts];
    for (const name of queue) {
      neighbors.get(name).filter((each) => !distance.has(each)).forEach((each) => {
        distance.set(each, distance.get(name) + 1);
        queue.push(each);
      });
    }
    const deepest = Math.max(...distance.values());
    let levels = Array.from({ length: deepest + 1 }, (_, level) =>
      [...distance.keys()].filter((name) => distance.get(name) === level),
    );
    levels = shown ? levels : levels.slice(1);
    const most = Math.max(...levels.map((names) => names.length));
    const width = Math.min(Math.max(80 * most, LEAST_WIDTH), MOST_WIDTH);
    const places = new Map();
    levels.forEach((names, level) => {
      const middle = (name) => {
        const below = neighbors.get(name).filter((each) => distance.get(each) < distance.get(name) && places.has(each));
        return below.length ? below.reduce((sum, each) => sum + places.get(each).x, 0) / below.length : 0;
      };
      const order = names.map((name) => [middle(name), name]).sort((one, other) => one[0] - other[0]);
      const y = MARGIN + LEVEL * (levels.length - 1 - level);
      order.forEach(([, name], place) => places.set(name, { x: ((place + 0.5) / names.length) * width, y }));
    });
    return { places, levels, width };
  }

  // Return a cable as two halves, each colored by the load of the direction that begins at its end.
  function cable(name, [one, other], [from, to], rate, loadOf, earlier) {
    const aside = Math.ceil(earlier / 2) * (earlier % 2 ? 14 : -14); // of parallel cables, so that none hides another
    const level = from.y === to.y;
    const middle = { x: (from.x + to.x) / 2 + (level ? 0 : aside), y: (from.y + to.y) / 2 - (level ? aside : 0) };
    const loads = [loadOf(name, other), loadOf(name, one)];
    const words = [`to ${other}`, `to ${one}`].map((way, place) => {
      const gbps = loads[place];
      return `${way} ${gbps === null ? "unknown" : `${number(gbps)} Gbit/s (${percent(gbps / rate)})`}`;
    });
    const made = shape("g", {}, shape("title", {}, `${name}, ${number(rate)} Gbit/s: ${words.join(", ")}`));
    [[from, loads[0]], [to, loads[1]]].forEach(([end, gbps]) => {
      const share = gbps === null ? null : gbps / rate;
      made.append(
        shape("line", {
          x1: end.x, y1: end.y, x2: middle.x, y2: middle.y,
          stroke: share === null ? "#c9cfd6" : color(share),
          "stroke-width": share === null ? 1 : 1.5 + 4.5 * Math.min(share, 1),
          ...(share === null ? { "stroke-dasharray": "3 3" } : {}),
        }),
      );
    });
    return made;
  }

  function node(name, { x, y }, level, names, hosts) {
    const isHost = level === 0 && hosts;
    const made = shape("g", {}, shape("title", {}, name));
    made.append(
      isHost
        ? shape("circle", { cx: x, cy: y, r: 5, fill: "#1b1f24" })
        : shape("rect", { x: x - 12, y: y - 7, width: 24, height: 14, rx: 3, fill: "#5b646e" }),
    );
    if (names.length <= MAX_LABELS) {
      made.append(shape("text", { x, y: isHost ? y + 22 : y - 12, "text-anchor": "middle", "font-size": 13 }, name));
    }
    return made;
  }

  // Return the color of a load as a share of the line rate: from gray through yellow to red.
  function color(share) {
    const stops = [[214, 220, 226], [230, 159, 0], [190, 40, 10]];
    const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const place = Math.min(Math.floor(at), stops.length - 2);
    return `rgb(${stops[place].map((each, part) => Math.round(each + (at - place) * (stops[place + 1][part] - each)))})`;
  }

  function legend() {
    const shares = [0, 0.25, 0.5, 0.75, 1];
    const keys = shares.map((share) =>
      element("span", { class: "key" }, element("i", { style: `background:${color(share)}` }), percent(share)),
    );
    return element("p", { class: "legend" }, "Load of the line rate, each half by what its end sends: ", ...keys);
  }
})();
