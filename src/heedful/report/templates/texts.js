
/* sentences */
const { scores: scoreNames, sentences } = widgetData("texts") || { sentences: [] };
const WHY = { damning: "lowest τ", innocent: "highest τ", random: "at random" };
const STEP = 12;
let shown = STEP;

function word(text, score, index) {
  const outer = element("span", "word " + (score < 0 ? "minus" : "plus"));
  const inner = element("span", "", text);
  outer.style.setProperty("--s", Math.abs(score).toFixed(3));
  outer.dataset.index = index;
  outer.title = score.toFixed(2) + " of the strongest";
  outer.append(inner);
  return outer;
}

function panel(sentence, name) {
  const made = element("div", "panel");
  made.append(element("h4", "", scoreNames[name]));
  const text = element("p");
  text.dir = "auto";
  const values = sentence.scores[name];
  if (!values) text.append(element("span", "grey", "not recorded for this text"));
  else sentence.words.forEach((one, i) => text.append(word(one, values[i], i), " "));
  if (values && sentence.more_words) {
    text.append(element("span", "grey", `… and ${sentence.more_words} more words`));
  }
  made.append(text);
  return made;
}

function item(sentence) {
  const made = element("li", "sentence");
  const right = sentence.predicted === sentence.label;
  const head = element("p", "head");
  head.append(element("span", "mark " + (right ? "right" : "wrong"), right ? "✓" : "✗"), " predicted ");
  head.append(element("bdi", "strong-text", sentence.predicted));
  if (sentence.probability !== null) head.append(` at ${number(sentence.probability, 2)}`);
  if (!right) head.append(", label ", element("bdi", "strong-text", sentence.label));
  const facts = [`τ ${number(sentence.tau, 2)}`];
  if (sentence.jsd !== null) facts.push(`JSD ${number(sentence.jsd, 2)}`);
  if (WHY[sentence.why]) facts.push(WHY[sentence.why]);
  facts.push(`text ${sentence.instance}`);
  head.append(element("span", "figures-of", facts.join(" · ")));
  made.append(head);
  if (sentence.question) {
    const asked = element("p", "grey", "Question: ");
    asked.append(element("bdi", "", sentence.question));
    made.append(asked);
  }
  const grid = element("div", "panels");
  for (const name of Object.keys(scoreNames)) {
    if (everRecorded.has(name)) grid.append(panel(sentence, name));
  }
  made.append(grid);
  return made;
}

const everRecorded = new Set(sentences.flatMap((one) => Object.keys(one.scores)));

const KEYS = {
  damning: (one) => one.tau,
  innocent: (one) => one.tau === null ? null : -one.tau,
  far: (one) => one.jsd === null ? null : -one.jsd,
  near: (one) => one.jsd,
  order: (one) => one.instance,
};

function chosen() {
  const words = byId("search").value.trim().toLowerCase();
  const [label, correct, why] = ["class", "correct", "why"].map((id) => byId(id).value);
  const key = KEYS[byId("sort").value];
  const found = sentences.filter((one) =>
    (!label || "=" + one.predicted === label)
    && (!correct || (one.predicted === one.label) === (correct === "yes"))
    && (!why || one.why === why)
    && (!words || one.words.join(" ").toLowerCase().includes(words)));
  // what has no value comes last, whichever way the rest is sorted
  const last = (value) => value === null ? Infinity : value;
  return found.sort((a, b) => last(key(a)) - last(key(b)) || a.instance - b.instance);
}

function draw(from = 0) {
  const found = chosen();
  if (!from) byId("list").replaceChildren();
  byId("list").append(...found.slice(from, shown).map(item));
  byId("count").textContent = found.length
    ? `${Math.min(shown, found.length)} of ${found.length} shown` : "No text matches.";
  byId("more").hidden = found.length <= shown;
}

function sameWord(event, on) {
  const here = event.target.closest?.(".panels .word");
  if (!here) return;
  const others = here.closest(".panels").querySelectorAll(`[data-index="${here.dataset.index}"]`);
  others.forEach((one) => one.classList.toggle("same", on));
}

if (sentences.length) {
  for (const name of [...new Set(sentences.map((one) => one.predicted))].sort()) {
    byId("class").append(option("=" + name, name));
  }
  for (const why of Object.keys(WHY)) {
    if (sentences.some((one) => one.why === why)) byId("why").append(option(why, WHY[why]));
  }
  byId("why").parentElement.hidden = byId("why").length < 2;  // every text is shown
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  byId("tools").addEventListener("input", () => { shown = STEP; draw(); });
  byId("more").addEventListener("click", () => {
    const first = shown;
    shown += STEP;
    draw(first);
    const next = byId("list").children[first];
    if (next) { next.tabIndex = -1; next.focus({ preventScroll: true }); }
  });
  byId("list").addEventListener("pointerover", (event) => sameWord(event, true));
  byId("list").addEventListener("pointerout", (event) => sameWord(event, false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    byId("search").focus();
  });
  draw();
}
