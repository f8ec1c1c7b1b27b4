// The trajectory browser: filters cards by their numbers, builds the cards of one page at a time out of plain text nodes,
// and gives each its picture (stored once, however many cards show it). No text is ever read as HTML.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  for (const image of document.querySelectorAll("img[data-picture]")) {
    const url = data.pictures[Number(image.dataset.picture)];
    if (url) image.src = url; else image.remove();
  }
  if (!data.cards || !by("cards")) return;

  // Fields of a card, as eval/report/bundle.py writes them; texts are places in data.strings.
  const [ARM, VERDICT, FAMILY, SPLIT, STOP, ROW, QUESTION, GOLD, ANSWER, WHY, LENIENT, REWARD, ERROR, SAMPLE, MS, PAIRS,
    GROUPS, PICTURES, PICTURE_COUNT, TURNS] = Array(20).keys();
  const [KIND, TEXT, DROPPED, CALL, OUTCOME, DETAIL, SEEN, FAULT] = Array(8).keys();
  const STEP = 20;
  const strings = data.strings;
  const text = (index) => strings[index];
  let lower = null;
  let found = [];
  let page = 0;
  let onlyRow = null;

  const make = (tag, name, content) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (content !== undefined) element.textContent = content;
    return element;
  };

  // Which strings hold a word: each text is looked through once, however many cards share it.
  const holding = (word) => {
    lower = lower || strings.map((one) => one.toLowerCase());
    return lower.map((one) => one.includes(word));
  };
  const cardHolds = (card, hits) => {
    for (let field = ROW; field <= ERROR; field += 1) if (hits[card[field]]) return true;
    return card[PAIRS].some((pair) => hits[pair]) || card[TURNS].some((turn) => turn.some((part) => hits[part]));
  };

  const fields = Array.from(by("filters").querySelectorAll("select"));
  const among = { pair: PAIRS, group: GROUPS };
  const single = { arm: ARM, outcome: VERDICT, family: FAMILY, stop: STOP, split: SPLIT };
  const tests = () => {
    const wanted = [];
    if (onlyRow !== null) wanted.push((card) => text(card[ROW]) === onlyRow);
    for (const { name, value } of fields) {
      if (!value) continue;
      if (name === "outcome" && value === "rules differ") wanted.push((card) => text(card[LENIENT]) !== "");
      else if (name in among) wanted.push((card) => card[among[name]].some((index) => text(index) === value));
      else wanted.push((card) => text(card[single[name]]) === value);
    }
    for (const word of by("words").value.toLowerCase().split(/\s+/).filter(Boolean)) {
      const hits = holding(word);
      wanted.push((card) => cardHolds(card, hits));
    }
    return wanted;
  };

  const turnOf = (turn) => {
    const box = make("div", `turn ${text(turn[KIND])}`);
    box.append(make("pre", "foreign", text(turn[TEXT])));
    if (text(turn[DROPPED])) {
      const line = make("p", "outcome", "cut after the action, never shown to anyone: ");
      line.append(make("code", "foreign", text(turn[DROPPED])));
      box.append(line);
    }
    if (text(turn[KIND]) === "malformed") {
      const line = make("p", "outcome", "malformed, ");
      line.append(make("span", "foreign", text(turn[CALL])));
      box.append(line);
    }
    if (text(turn[OUTCOME])) {
      const seen = make("div", "observed");
      const line = make("p", "outcome", `${text(turn[CALL])} · ${text(turn[OUTCOME])}`);
      if (text(turn[DETAIL])) line.append(" · ", make("span", "foreign", text(turn[DETAIL])));
      seen.append(line, make("pre", "foreign", text(turn[SEEN])));
      if (text(turn[FAULT])) seen.append(make("p", "outcome foreign", text(turn[FAULT])));
      box.append(seen);
    }
    return box;
  };

  const picturesOf = (card) => {
    const side = make("div", "pictures");
    let missing = card[PICTURE_COUNT] - card[PICTURES].length;
    for (const index of card[PICTURES]) {
      const url = data.pictures[index];
      if (!url) { missing += 1; continue; }
      const image = make("img");
      image.alt = "picture of the question";
      image.src = url;
      side.append(image);
    }
    if (missing > 0) side.append(make("p", "small soft", `${missing} picture${missing > 1 ? "s" : ""} left out of this file`));
    return side;
  };

  const cardOf = (card) => {
    const article = make("article", "card");
    const body = make("div");
    const header = make("header");
    header.append(make("span", `tag ${text(card[VERDICT])}`, text(card[VERDICT])));
    const sample = card[SAMPLE] ? `sample ${card[SAMPLE]}` : "";
    for (const one of [text(card[ARM]), text(card[FAMILY]), text(card[SPLIT]), text(card[STOP]), sample]) {
      if (one) header.append(make("span", "tag", one));
    }
    for (const index of card[GROUPS]) header.append(make("span", "tag", text(index)));
    body.append(header, make("h3", "foreign", text(card[QUESTION])));
    for (const turn of card[TURNS]) body.append(turnOf(turn));
    const list = make("dl", "verdict");
    const lines = [["answer", text(card[ANSWER]) || "none"], ["gold", text(card[GOLD])], ["score", text(card[WHY]) || "not scored"]];
    if (text(card[LENIENT])) lines.push(["lenient score", text(card[LENIENT])]);
    if (text(card[REWARD])) lines.push(["reward", text(card[REWARD])]);
    if (text(card[ERROR])) lines.push(["error", text(card[ERROR])]);
    lines.push(["row", `${text(card[ROW])}, ${(card[MS] / 1000).toFixed(2)} s`]);
    for (const [name, value] of lines) list.append(make("dt", "", name), make("dd", "foreign", value));
    body.append(list);
    if (onlyRow === null) {
      const button = make("button", "", "all trajectories of this question");
      button.type = "button";
      button.dataset.row = text(card[ROW]);
      body.append(button);
    }
    article.append(picturesOf(card), body);
    return article;
  };

  const show = () => {
    const pages = Math.max(1, Math.ceil(found.length / STEP));
    page = Math.min(Math.max(page, 0), pages - 1);
    const from = page * STEP;
    const shown = found.slice(from, from + STEP);
    by("cards").replaceChildren(...shown.map(cardOf));
    const row = onlyRow === null ? "" : ` of row ${onlyRow}`;
    by("count").textContent = `${found.length} of ${data.cards.length} trajectories${row}`
      + (shown.length ? `, ${from + 1} to ${from + shown.length} shown` : "; nothing fits these filters");
    by("page").textContent = `page ${page + 1} of ${pages}`;
    by("previous").disabled = page === 0;
    by("next").disabled = page + 1 >= pages;
    by("pager").hidden = pages === 1;
  };
  const restart = () => {
    const wanted = tests();
    found = data.cards.filter((card) => wanted.every((fits) => fits(card)));
    page = 0;
    show();
  };
  const turn = (by_) => {
    page += by_;
    show();
    by("trajectories").scrollIntoView();
  };
  const clear = () => {
    onlyRow = null;
    for (const field of fields) field.value = "";
    by("words").value = "";
  };

  let waiting = 0;
  by("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const field of fields) field.addEventListener("change", restart);
  by("words").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(restart, 120); });
  by("clear").addEventListener("click", () => { clear(); restart(); });
  by("previous").addEventListener("click", () => turn(-1));
  by("next").addEventListener("click", () => turn(1));
  document.addEventListener("click", (event) => {
    const row = event.target instanceof Element && event.target.closest("button[data-row]");
    if (!row) return;
    clear();
    onlyRow = row.dataset.row;
    restart();
    by("trajectories").scrollIntoView();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest("input, select, textarea, [tabindex]")) return;
    if (event.key === "/") { event.preventDefault(); by("words").focus(); }
    if (event.key === "ArrowRight" && !by("next").disabled) turn(1);
    if (event.key === "ArrowLeft" && !by("previous").disabled) turn(-1);
  });
  restart();
})();
