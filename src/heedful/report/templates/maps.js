
/* whole maps: a byte is the square root of a weight as a share of 255 */
const kept = widgetData("maps");
const COLOUR = [30, 90, 150];  // the style sheet lightens it on the dark side
const DEPTH = Uint8Array.from({ length: 256 }, (_, level) => 255 * (level / 255) ** (2 / 3));  // the cube root
const CELL = { least: 12, most: 30, letters: 11 };
const formatWeight = (weight) => weight.toFixed(weight < 0.1 ? 3 : 2);  // the precision of one byte
let map;  // what is enlarged: its levels, tokens, and the cell under the pointer or the keys

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.packed), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const levels = new Uint8Array(await new Response(stream).arrayBuffer());
  let from = 0;
  return text.layers.map((layer) => {
    const queries = layer.queries || text.keys;
    const heads = layer.heads.map((head) => {
      const size = queries.length * text.keys.length;
      from += size;
      return { layer: layer.layer, head, queries, keys: text.keys, levels: levels.subarray(from - size, from) };
    });
    return { layer: layer.layer, heads };
  });
}

function paint(canvas, { levels, keys, queries }) {
  canvas.width = keys.length;
  canvas.height = queries.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(keys.length, queries.length);
  for (let i = 0; i < levels.length; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = COLOUR[c];
    image.data[4 * i + 3] = DEPTH[levels[i]];
  }
  context.putImageData(image, 0, 0);
}

/* the grid: one stop for the Tab key, arrows inside */
function nameOf({ layer, head }) {
  const tau = kept.tau[`${layer} ${head}`];
  return `Layer ${layer}, head ${head}` + (tau === undefined ? "" : `, mean τ ${number(tau, 2)}`);
}

function inGrid(role, className, ...inside) {
  const made = element("div", className);
  made.setAttribute("role", role);
  made.append(...inside);
  return made;
}

function thumbnail(one) {
  const made = element("button", "thumbnail");
  made.type = "button";
  made.tabIndex = -1;
  made.title = nameOf(one);
  made.setAttribute("aria-label", nameOf(one) + ", enlarge");
  made.append(element("canvas"));
  paint(made.firstChild, one);
  made.map = one;
  return inGrid("gridcell", "", made);
}

function row({ layer, heads }) {
  const audited = kept.layer === layer;
  const name = inGrid("rowheader", "name", `layer ${layer}`);
  if (audited) name.append(element("em", "", "under audit"));
  return inGrid("row", audited ? "row audited" : "row", name, ...heads.map(thumbnail));
}

function numbers(most) {
  const heads = Array.from({ length: most }, (_, head) => inGrid("columnheader", "number", `${head}`));
  return inGrid("row", "row", inGrid("columnheader", "name", "head"), ...heads);
}

const thumbnails = () => [...byId("maps-grid").querySelectorAll(".thumbnail")];

function goTo(target) {
  thumbnails().forEach((one) => { one.tabIndex = one === target ? 0 : -1; });
  target.focus();
}

function walk(event) {
  const here = event.target.closest(".thumbnail");
  if (!here) return;
  const rows = [...byId("maps-grid").children].map((one) => [...one.querySelectorAll(".thumbnail")]);
  const y = rows.findIndex((one) => one.includes(here));
  const x = rows[y].indexOf(here);
  const next = {
    ArrowLeft: rows[y][x - 1], ArrowRight: rows[y][x + 1], ArrowUp: rows[y - 1]?.[x],
    ArrowDown: rows[y + 1]?.[x], Home: rows[y][0], End: rows[y].at(-1),
  };
  if (!(event.key in next)) return;
  event.preventDefault();
  if (next[event.key]) goTo(next[event.key]);
}

async function showText() {
  const text = kept.texts[byId("maps-text").value];
  const rows = await unpacked(text);
  if (text !== kept.texts[byId("maps-text").value]) return;  // another was chosen meanwhile
  const most = Math.max(...rows.map((one) => one.heads.length));
  byId("maps-words").replaceChildren(...text.keys.flatMap((one) => [element("bdi", "", one), " "]));
  byId("maps-grid").style.setProperty("--heads", most);
  byId("maps-grid").replaceChildren(numbers(most), ...rows.map(row));
  thumbnails()[0].tabIndex = 0;
  byId("maps").hidden = false;
}

/* one map, large */
function enlarge(target) {
  map = { ...target.map, x: -1, y: -1, from: target };
  const all = thumbnails();
  const last = kept.position === "last" ? map.queries.length - 1 : 0;
  const audited = kept.layer === map.layer && kept.position ? last : -1;
  byId("map-name").textContent = nameOf(map);
  byId("map-before").disabled = target === all[0];
  byId("map-after").disabled = target === all.at(-1);
  byId("map-status").textContent = "Point at a cell, or go there with the arrow keys.";
  byId("map-here").hidden = true;
  byId("map-keys").replaceChildren(...map.keys.map((one) => element("bdi", "", one)));
  byId("map-queries").replaceChildren(...map.queries.map((one, i) => {
    const made = element("bdi", i === audited ? "audited" : "", one);
    if (i === audited) made.title = "the row under audit";
    return made;
  }));
  const fits = Math.floor(Math.min(innerWidth - 200, innerHeight - 260) / map.keys.length);
  const size = Math.max(CELL.least, Math.min(CELL.most, fits));
  const large = byId("map-large").style;
  large.setProperty("--cell", `${size}px`);
  large.setProperty("--letters", `${Math.min(14, Math.max(CELL.letters, size - 4))}px`);
  large.setProperty("--across", map.keys.length);
  large.setProperty("--down", map.queries.length);
  paint(byId("map-canvas"), map);
  if (byId("map").open) return;
  byId("map").showModal();
  byId("map-cells").focus({ preventScroll: true });
  byId("map-scroll").scrollTo(0, 0);
}

function point(x, y) {
  const across = map.keys.length;
  const inside = x >= 0 && y >= 0 && x < across && y < map.queries.length;
  for (const [id, at] of [["map-keys", x], ["map-queries", y]]) {
    [...byId(id).children].forEach((one, i) => one.classList.toggle("here", inside && i === at));
  }
  byId("map-here").hidden = !inside;
  if (!inside) return;
  Object.assign(map, { x, y });
  byId("map-here").style.setProperty("--x", x);
  byId("map-here").style.setProperty("--y", y);
  const weight = element("b", "", formatWeight((map.levels[y * across + x] / 255) ** 2));
  byId("map-status").replaceChildren(
    "“", element("bdi", "", map.queries[y]), "” attends to “", element("bdi", "", map.keys[x]), "”: ", weight);
}

function pointAt(event) {
  const box = byId("map-canvas").getBoundingClientRect();
  const share = (at, from, size) => Math.floor((at - from) / size);
  point(share(event.clientX, box.left, box.width / map.keys.length),
    share(event.clientY, box.top, box.height / map.queries.length));
}

function step(event) {
  const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [];
  if (x === undefined) return;
  event.preventDefault();
  const within = (at, size) => Math.max(0, Math.min(size - 1, at));
  if (map.x < 0) point(0, 0);
  else point(within(map.x + x, map.keys.length), within(map.y + y, map.queries.length));
  byId("map-here").scrollIntoView({ block: "nearest", inline: "nearest" });
}

function beside(by) {
  const all = thumbnails();
  const next = all[all.indexOf(map.from) + by];
  if (next) enlarge(next);
}

if (kept) {
  kept.texts.forEach((text, i) => {
    const start = text.keys.slice(0, 9).join(" ");
    byId("maps-text").append(option(i, `text ${text.instance}: ${start} …`));
  });
  byId("maps-tools").hidden = kept.texts.length < 2;
  byId("maps-tools").addEventListener("submit", (event) => event.preventDefault());
  byId("maps-text").addEventListener("input", showText);
  byId("maps-grid").addEventListener("keydown", walk);
  byId("maps-grid").addEventListener("click", (event) => {
    const target = event.target.closest(".thumbnail");
    if (target) enlarge(target);
  });
  byId("map-cells").addEventListener("pointermove", pointAt);
  byId("map-cells").addEventListener("pointerdown", pointAt);
  byId("map-cells").addEventListener("keydown", step);
  byId("map-before").addEventListener("click", () => beside(-1));
  byId("map-after").addEventListener("click", () => beside(1));
  byId("map-close").addEventListener("click", () => byId("map").close());
  byId("map").addEventListener("click", (event) => {
    if (event.target === byId("map")) byId("map").close();  // outside of it
  });
  byId("map").addEventListener("close", () => goTo(map.from));
  if (typeof DecompressionStream === "function") showText();
  else byId("maps-trouble").textContent = "The maps need a browser of 2023 or later.";
}
