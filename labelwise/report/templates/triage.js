
// Triage: the places of a form, and what somebody decides about each. Offsets count characters as Python does.
const kept = `labelwise decisions ${cards.digest}`;
const decisions = new Map();
const ways = ["marked", "unmarked"].map((id) => document.getElementById(id));
const decided = document.getElementById("decided");
const lengthOf = (text) => [...text].length;
let current = null; // the item that the keys are about
let chosen = null; // [first, last] word of the corrected span, where one is being chosen

// Of a document, as {doc} stands for it; folders stay folders.
const nameInUrl = (doc) => encodeURIComponent(doc.replace(/\.txt$/, "")).replaceAll("%2F", "/");

function makePlace(label, marked, [key, doc, dataset, file, answer, offset, words, first, end, other]) {
  const place = { label, marked, key, doc, dataset, file, answer, offset, words, first, end, other };
  place.span = spanOf(place, first, end - 1);
  place.id = JSON.stringify([dataset, key, label, answer, marked, ...place.span]);
  return place;
}

function spanOf({ offset, words }, first, last) {
  const start = offset + lengthOf(words.slice(0, first).join(""));
  return [start, start + lengthOf(words.slice(first, last + 1).join("").replace(/ $/, ""))];
}

const places = new Map();
const forms = (cards.forms ?? []).map((form) => {
  const both = form.ways.map((way, n) => way.map((one) => makePlace(form.label, n === 0, one)));
  both.flat().filter(({ answer }) => answer).forEach((place) => places.set(place.id, place));
  return { ...form, ways: both };
});

// A decision is about the span that it removes, or else about the one that it adds, which may have been corrected.
function findPlace({ dataset, text, label, answer, removed, added }) {
  const id = JSON.stringify([dataset, text, label, answer, Boolean(removed), ...(removed ?? added ?? [])]);
  if (places.has(id) || removed || !added) return places.get(id);
  return [...places.values()].find(
    (place) =>
      !place.marked && place.dataset === dataset && place.key === text && place.label === label &&
      place.answer === answer && place.span[0] < added[1] && added[0] < place.span[1],
  );
}

function keep() {
  try {
    localStorage.setItem(kept, JSON.stringify([...decisions.values()]));
  } catch {
    document.getElementById("not-kept").hidden = false;
  }
}

function take(rows) {
  const fitting = rows.map((row) => [row && findPlace(row), row]).filter(([place]) => place);
  fitting.forEach(([place, row]) => decisions.set(place.id, row));
  return fitting.length;
}

function decide(place, verdict, added) {
  const { dataset, key, label, answer, marked, span } = place;
  const [removed, instead] = marked ? [span, added ?? null] : [null, added ?? span];
  decisions.set(place.id, { dataset, text: key, label, answer, verdict, removed, added: instead });
  keep();
}

function tell(message = "") {
  const count = decisions.size === 1 ? "1 decision" : `${decisions.size.toLocaleString("en")} decisions`;
  decided.textContent = [message, `${count}.`].filter(Boolean).join(" ");
}

function say(place) {
  const row = decisions.get(place.id);
  if (!row) return "";
  const { verdict, removed, added } = row;
  if (verdict !== "gold is wrong") return verdict;
  if (!added) return "gold is wrong: no span";
  const text = [...place.words.join("")].slice(added[0] - place.offset, added[1] - place.offset).join("");
  return `gold is wrong: ${text.trim() || added.join(" to ")}`;
}

function fillItem(item) {
  const { words, first, end, doc, dataset, file, other } = item.place;
  const url = doc && cards.urls[dataset]?.replaceAll("{doc}", nameInUrl(doc));
  const text = (from, to) => words.slice(from, to).join("").replace(/\s+/g, " ");
  const where = url ? make("a", { href: url, rel: "noreferrer" }, doc) : doc;
  const line = make("p", { className: "kwic", dir: "auto" });
  if (item === current && chosen) {
    words.forEach((word, n) => {
      line.append(make("span", { className: "word" }, word.replace(/\s+/g, " ")));
      line.lastChild.dataset.word = n;
    });
    line.classList.add("choosing");
  } else {
    const form = text(first, end);
    line.append(
      make("span", { className: "before" }, text(0, first)),
      make("mark", {}, form.trimEnd()),
      make("span", {}, " ".repeat(form.length - form.trimEnd().length) + text(end)),
    );
  }
  const verdict = make("strong", {}, say(item.place));
  const about = make("p", { className: "note" }, verdict, verdict.textContent ? " " : "", where, doc ? " " : "", `${dataset} ${file}`);
  if (other) about.append(`; ${other} there`);
  item.replaceChildren(line, about, ...(item === current && item.place.answer ? [makeButtons()] : []));
}

function makeButtons() {
  const button = (name, key) => {
    const made = make("button", { type: "button", tabIndex: -1 }, name, " ", make("kbd", {}, key));
    made.addEventListener("click", () => act(key));
    return made;
  };
  const all = chosen
    ? [button("Save", "Enter"), ...(current.place.marked ? [button("No span", "n")] : []), button("Cancel", "Escape")]
    : [button("Gold is right", "r"), button("Gold is wrong", "w"), button("Policy", "p")];
  if (!chosen && decisions.has(current.place.id)) all.push(button("Undo", "u"));
  const group = make("div", { className: "verdicts" }, ...all);
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "What do you decide?");
  return group;
}

function moveTo(item) {
  if (!item) return;
  const before = current;
  [current, chosen] = [item, null];
  if (before && before !== item) fillItem(before);
  for (const other of item.parentElement.children) other.tabIndex = other === item ? 0 : -1;
  fillItem(item);
  item.focus();
}

function choose(words) {
  const begun = chosen;
  chosen = words;
  const { words: all } = current.place;
  const text = all.slice(Math.min(...words), Math.max(...words) + 1).join("").trim();
  if (!begun) fillItem(current);
  current.querySelectorAll(".word").forEach((word, n) => {
    word.classList.toggle("chosen", n >= Math.min(...words) && n <= Math.max(...words));
  });
  current.focus();
  tell(`Corrected span: ${text}. Arrows move, Shift and arrows extend; Enter saves.`);
}

// The next word in a direction that isn't white space alone.
function step(word, by) {
  const { words } = current.place;
  for (let next = word + by; next >= 0 && next < words.length; next += by) if (words[next].trim()) return next;
  return word;
}

function act(key) {
  const { place } = current;
  const items = ways.flatMap((way) => [...way.children]);
  const neighbour = (by) => items[items.indexOf(current) + by];
  const finish = (message) => {
    chosen = null;
    fillItem(current);
    current.focus();
    tell(message);
  };
  if (chosen) {
    const span = spanOf(place, Math.min(...chosen), Math.max(...chosen));
    if (key === "Escape") finish();
    else if (key === "n" && place.marked) finish(decide(place, "gold is wrong", null));
    else if (key === "Enter" && place.marked && String(span) === String(place.span))
      tell("That is the span as it is: choose other words, or no span.");
    else if (key === "Enter") finish(decide(place, "gold is wrong", span));
    else return false;
  } else if (key === "j" || key === "ArrowDown") moveTo(neighbour(1));
  else if (key === "k" || key === "ArrowUp") moveTo(neighbour(-1));
  else if (!place.answer) return false;
  else if (key === "r" || key === "p") finish(decide(place, key === "r" ? "gold is right" : "policy"));
  else if (key === "w") choose([place.first, place.end - 1]);
  else if (key === "u") finish(decisions.delete(place.id) && keep());
  else return false;
  return true;
}

function showForms(label, wanted) {
  const own = forms.filter((form) => form.label === label);
  const form = own.find((one) => one.form === wanted) ?? own[0];
  const others = cards.others ? `Left out: ${cards.others.toLocaleString("en")} forms of all labels; see findings.tsv.` : "";
  const left = cards.forms ? others : "Missing: the corpus that was evaluated. Run weasel run all.";
  document.getElementById("card-left-out").textContent = own.length ? left : `No form that test has mistakes about. ${left}`;
  document.getElementById("triage-help").hidden = !own.length;
  document.getElementById("card-forms").replaceChildren(
    ...own.map((one) => {
      const link = make("a", { href: `#${new URLSearchParams({ label, form: one.form })}` }, one.form);
      if (one === form) link.setAttribute("aria-current", "true");
      const counts = `${one.marked.toLocaleString("en")} marked, ${one.unmarked.toLocaleString("en")} not; `;
      const mistakes = one.mistakes === 1 ? "1 mistake" : `${one.mistakes.toLocaleString("en")} mistakes`;
      return make("li", {}, link, " ", make("span", { className: "note" }, counts + mistakes));
    }),
  );
  [current, chosen] = [null, null];
  ways.forEach((way, n) => {
    const all = form ? [form.marked, form.unmarked][n] : 0;
    const items = (form?.ways[n] ?? []).map((place) => Object.assign(make("li", { tabIndex: -1 }), { place }));
    items.forEach(fillItem);
    if (items.length) items[0].tabIndex = 0;
    way.replaceChildren(...items);
    const more = all > items.length ? `; ${(all - items.length).toLocaleString("en")} more: findings.tsv` : "";
    const title = n ? "Not marked" : `Marked ${label}`;
    document.getElementById(`${way.id}-title`).textContent = form ? `${title}: ${all.toLocaleString("en")}${more}` : "";
  });
  tell();
}

const wordsOf = document.querySelector(".ways");
wordsOf.addEventListener("focusin", ({ target }) => {
  if (target.matches("li") && target !== current) moveTo(target);
});
wordsOf.addEventListener("click", ({ target }) => {
  const item = target.closest("li");
  if (item && item !== current && !target.closest("a")) moveTo(item);
});
wordsOf.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (!current || event.ctrlKey || event.metaKey || event.altKey || target.closest("a")) return;
  if (target.closest("button") && ["Enter", " "].includes(key)) return;
  const ahead = getComputedStyle(current.querySelector(".kwic")).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  const by = { ArrowLeft: -1, ArrowRight: 1 }[key] * (ahead === "ArrowRight" ? 1 : -1);
  if (chosen && by) {
    const last = step(chosen[1], by);
    choose(event.shiftKey ? [chosen[0], last] : [last, last]);
  } else if (!act(key)) return;
  event.preventDefault();
});
const wordAt = ({ target }) => Number(target.closest?.(".word")?.dataset.word ?? NaN);
wordsOf.addEventListener("pointerdown", (event) => {
  const word = wordAt(event);
  if (chosen && word >= 0) {
    choose(event.shiftKey ? [chosen[0], word] : [word, word]);
    event.preventDefault();
  }
});
wordsOf.addEventListener("pointerover", (event) => {
  const word = wordAt(event);
  if (chosen && event.buttons === 1 && word >= 0) choose([chosen[0], word]);
});

const save = make("button", { type: "button", id: "download" }, "Download decisions.jsonl");
document.querySelector(".decisions label").before(save);
save.addEventListener("click", () => {
  const lines = [...decisions.values()].map((row) => `${JSON.stringify(row)}\n`);
  const href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  make("a", { href, download: "decisions.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
});
document.getElementById("load").addEventListener("change", async ({ target }) => {
  const lines = (await target.files[0].text()).split("\n").filter((line) => line.trim());
  const rows = lines.map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      return null;
    }
  });
  const fitting = take(rows);
  keep();
  showCard();
  tell(`${fitting} of ${lines.length} fit this report.`);
});

try {
  take(JSON.parse(localStorage.getItem(kept) ?? "[]"));
} catch {
  document.getElementById("not-kept").hidden = false;
}
addEventListener("hashchange", showCard);
if (location.hash) showCard();
