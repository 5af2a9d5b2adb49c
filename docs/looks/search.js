// Search in INDEX, which words.js has: the sections of all pages, and for each word the sections that have it.
"use strict";

const LITTLE = new Set("a an and are can do does for how i in is it my of or the to what when where which why with".split(" "));

/** The words of a question; the little ones only if it has no others. */
function wordsOf(asked) {
  const words = asked.toLowerCase().match(/[\p{L}\p{N}_][\p{L}\p{N}_.-]*/gu) || [];
  const telling = words.filter((word) => !LITTLE.has(word));
  return telling.length ? telling : words;
}

/** Sections that have most of the words asked for, the last one perhaps as a beginning; the best first. */
function search(index, asked, most = 20) {
  const words = wordsOf(asked);
  const scores = new Map();
  words.forEach((word, place) => {
    const here = new Map();
    const add = (known, weight) => {
      for (const number of index.words[known]) here.set(number, Math.max(here.get(number) || 0, weight));
    };
    if (Object.hasOwn(index.words, word)) add(word, 3);
    if (place === words.length - 1 && word.length > 1)
      for (const known in index.words) if (known !== word && known.startsWith(word)) add(known, 1);
    for (const [number, weight] of here) {
      const [page, title] = index.sections[number].slice(1, 3).map((text) => text.toLowerCase());
      const named = (title === word ? 10 : title.includes(word) ? 4 : 0) + (page.includes(word) ? 1 : 0);
      const [count, score] = scores.get(number) || [0, 0];
      scores.set(number, [count + 1, score + weight + named]);
    }
  });
  const order = ([one, [count, score]], [two, [others, other]]) => others - count || other - score || one - two;
  return [...scores].sort(order).slice(0, most).map(([number]) => index.sections[number]);
}

/** Some words of a text around the first that was asked for: pieces, each with whether it is one of those. */
function excerpt(text, asked, most = 160) {
  const escaped = wordsOf(asked).map((word) => word.replaceAll(".", "\\.")).sort((one, two) => two.length - one.length);
  const sought = new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join("|")})`, "giu");
  const places = escaped.length ? [...text.matchAll(sought)] : [];
  const best = places.find((place) => place[0].length === Math.max(...places.map((each) => each[0].length)));
  let from = Math.max((best ? best.index : 0) - 50, 0);
  if (from) from = Math.min(text.indexOf(" ", from) + 1 || best.index, best.index);
  let until = Math.min(from + most, text.length);
  if (until < text.length) until = Math.max(text.lastIndexOf(" ", until), best ? best.index + best[0].length : 0);
  const pieces = text.slice(from, until).split(sought).map((piece, number) => [piece, number % 2 === 1]);
  if (from) pieces.unshift(["… ", false]);
  if (until < text.length) pieces.push([" …", false]);
  return pieces.filter(([piece]) => piece);
}

function show() {
  const asked = document.getElementById("asked"), found = document.getElementById("found");
  const sections = search(INDEX, asked.value);
  found.replaceChildren(...sections.map(([place, page, title, text]) => {
    const item = document.createElement("li"), link = document.createElement("a"), said = document.createElement("p");
    link.href = document.body.dataset.root + place;
    link.textContent = title === page ? page : `${page}: ${title}`;
    said.append(...excerpt(text, asked.value).map(([piece, sought]) => {
      if (!sought) return piece;
      const mark = document.createElement("mark");
      mark.textContent = piece;
      return mark;
    }));
    item.append(link, said);
    return item;
  }));
  if (!sections.length && asked.value.trim()) found.textContent = "Nothing has these words.";
  found.hidden = !asked.value.trim();
}

if (typeof document !== "undefined") {
  const asked = document.getElementById("asked");
  asked.addEventListener("input", show);
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const first = document.querySelector("#found a");
    if (first) location.href = first.href;
  });
  document.getElementById("found").addEventListener("click", (event) => {
    if (event.target.closest("a")) { asked.value = ""; show(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== asked) { event.preventDefault(); asked.focus(); }
    if (event.key === "Escape") { asked.value = ""; show(); }
  });
}
