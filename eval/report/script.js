// The trajectory browser: filters by the cards' data attributes, shows a page at a time, and gives a card its picture
// only when it is first shown (each picture is stored once, however many cards use it).
"use strict";
(() => {
  const STEP = 20;
  const pictures = JSON.parse(document.getElementById("pictures").textContent);
  const cards = Array.from(document.querySelectorAll(".card"));
  const fields = Array.from(document.querySelectorAll(".filters select"));
  const words = document.getElementById("words");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  let limit = STEP;

  const matches = (card) => {
    const text = words.value.trim().toLowerCase();
    if (text && !card.dataset.text.includes(text)) return false;
    return fields.every((field) => {
      if (!field.value) return true;
      return card.dataset[field.name].split("|").includes(field.value);
    });
  };

  const show = () => {
    let found = 0;
    for (const card of cards) {
      const fits = matches(card);
      if (fits) found += 1;
      card.hidden = !fits || found > limit;
      if (!card.hidden) {
        for (const image of card.querySelectorAll("img[data-picture]")) {
          if (!image.src) image.src = pictures[image.dataset.picture] || "";
        }
      }
    }
    count.textContent = `${found} of ${cards.length}` + (found > limit ? `, first ${limit} shown` : "");
    more.hidden = found <= limit;
  };

  const restart = () => { limit = STEP; show(); };
  fields.forEach((field) => field.addEventListener("change", restart));
  words.addEventListener("input", restart);
  more.addEventListener("click", () => { limit += STEP; show(); });
  show();
})();
