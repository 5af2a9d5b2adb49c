/* What pages do beyond links and forms: live parts, keys, drafts, dates, printing. Without it all pages work. */
"use strict";
(() => {
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  root.classList.add("js");

  // --- the bar on narrow screens ---
  const pages = $("button.pages"), nav = $("#pages");
  if (pages && nav) {
    pages.hidden = false;
    pages.addEventListener("click", () => {
      const open = nav.classList.toggle("open");
      pages.setAttribute("aria-expanded", String(open));
    });
  }

  // --- after something was done, the focus is at what came of it ---
  const came = $("[data-focus]") || $("[aria-invalid=true]");
  if (came) came.focus();

  // --- parts that change by themselves ---
  const said = $("#said");
  let lastSaid = 0;
  const announce = (text) => {
    if (said && Date.now() - lastSaid > 10000) { lastSaid = Date.now(); said.textContent = text; }
  };
  const keysOf = (part) => new Set($$("[data-row]", part).map((row) => row.dataset.row));
  const refresh = async () => {
    const parts = $$("[data-live][id]");
    if (!parts.length) return;
    const answer = await fetch(location.href, { headers: { "Postroom-Live": "1" } });
    if (!answer.ok || answer.redirected) { location.reload(); return; }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) {
      const next = fresh.getElementById(part.id);
      if (!next || next.isEqualNode(part)) continue;
      if (part.contains(document.activeElement) && document.activeElement !== document.body) { offer(part, next); continue; }
      put(part, next);
    }
  };
  const put = (part, next) => {
    const before = keysOf(part);
    const here = document.importNode(next, true);
    part.replaceWith(here);
    const come = $$("[data-row]", here).filter((row) => !before.has(row.dataset.row));
    come.forEach((row) => row.classList.add("fresh"));
    if (come.length) announce(`${come.length} new`);
  };
  const offer = (part, next) => {
    let button = $(":scope > button.waiting", part);
    if (!button) {
      button = document.createElement("button");
      button.type = "button";
      button.className = "waiting plain";
      part.prepend(button);
    }
    const count = [...keysOf(next)].filter((row) => !keysOf(part).has(row)).length;
    button.textContent = count ? `${count} new` : "changed";
    button.onclick = () => put(part, next);
  };
  const at = document.body.dataset.liveAt;
  if (at && window.EventSource) {
    const shown = $(".live"), source = new EventSource(at);
    let due = null;
    source.addEventListener("changed", () => { due = due || setTimeout(() => { due = null; refresh(); }, 150); });
    source.addEventListener("open", () => { shown.classList.remove("off"); $("span", shown).textContent = "live"; });
    source.addEventListener("error", () => {
      if (shown.classList.contains("off")) return;
      shown.classList.add("off");
      $("span", shown).textContent = `not live since ${new Date().toTimeString().slice(0, 5)}, trying again`;
    });
    addEventListener("pagehide", () => source.close());
  }

  // --- what takes long is asked for again until it is over ---
  let leaving = false;  // a form was sent: to load the page again would take its answer away
  addEventListener("submit", () => { leaving = true; });
  const follow = async () => {
    const answer = await fetch(location.href, { headers: { "Postroom-Live": "1" } }).catch(() => null);
    if (leaving) return;
    if (!answer) { setTimeout(follow, 2000); return; }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("asking");
    if (leaving) return;
    if (!next) { location.reload(); return; }
    $("#asking [role=status]").textContent = $("[role=status]", next).textContent;
    $("#asking progress").replaceWith(document.importNode($("progress", next), true));
    setTimeout(follow, 500);
  };
  if ($("#asking")) setTimeout(follow, 500);

  // --- a text is drawn as one writes it ---
  $$("form[data-draws]").forEach((form) => {
    let due = null, turn = 0;
    form.addEventListener("input", () => {
      clearTimeout(due);
      due = setTimeout(async () => {
        const mine = ++turn, said = new URLSearchParams(new FormData(form));
        said.set("do", "draw");
        const answer = await fetch(location.href, { method: "POST", body: said }).catch(() => null);
        if (!answer) return;
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(form.dataset.draws);
        if (fresh && mine === turn) document.getElementById(form.dataset.draws).replaceWith(document.importNode(fresh, true));
      }, 250);
    });
  });

  // --- drafts: what is typed is kept here until it is saved ---
  const drafted = $("form[data-draft]");
  if (drafted) {
    const name = `postroom-draft ${location.pathname}`, note = $("[data-draft-said]");
    const fields = () => $$("[data-field]", drafted);
    const first = Object.fromEntries(fields().map((field) => [field.name, field.value]));
    const tell = (time) => {
      if (note) note.textContent = time ? `draft kept at ${time}` : "";
      $$("[data-needs-saved]").forEach((button) => { button.disabled = Boolean(time); });
    };
    const kept = JSON.parse(localStorage.getItem(name) || "null");
    if (drafted.dataset.draft === "saved") localStorage.removeItem(name);
    else if (kept && kept.seen === drafted.dataset.seen && !$("[aria-invalid=true]", drafted)) {
      fields().forEach((field) => { if (field.name in kept.values) field.value = kept.values[field.name]; });
      tell(kept.time);
    }
    drafted.addEventListener("input", () => {
      const values = Object.fromEntries(fields().filter((field) => field.value !== first[field.name]).map((field) => [field.name, field.value]));
      const time = new Date().toTimeString().slice(0, 5);
      if (Object.keys(values).length) localStorage.setItem(name, JSON.stringify({ seen: drafted.dataset.seen, values, time }));
      else localStorage.removeItem(name);
      tell(Object.keys(values).length ? time : "");
    });
    drafted.addEventListener("submit", () => localStorage.removeItem(name));
    $$("[data-undo]").forEach((button) => button.addEventListener("click", () => { localStorage.removeItem(name); location.reload(); }));
  }
  $$("form[data-forget]").forEach((form) => form.addEventListener("submit", () => {
    Object.keys(localStorage).filter((name) => name.startsWith("postroom-draft")).forEach((name) => localStorage.removeItem(name));
  }));

  // --- a field says what it takes; dates are picked ---
  document.addEventListener("focusin", (event) => {
    const field = event.target.closest("[data-field]"), status = field && $("[data-status]", field.closest(".paper"));
    if (status) {
      status.replaceChildren(Object.assign(document.createElement("b"), { textContent: field.dataset.label }), field.dataset.takes || "");
    }
  });
  $$(".pick").forEach((pick) => {
    const field = document.getElementById(pick.dataset.for), picker = $("input", pick), button = $("button", pick);
    const open = () => { picker.value = /^\d{4}-\d\d-\d\d$/.test(field.value) ? field.value : ""; picker.showPicker(); };
    if (button) {  // narrow blanks have none; Alt+Down opens it in all
      button.hidden = false;
      button.addEventListener("click", open);
    }
    field.addEventListener("keydown", (event) => { if (event.altKey && event.key === "ArrowDown") { event.preventDefault(); open(); } });
    picker.addEventListener("change", () => { field.value = picker.value; field.dispatchEvent(new Event("input", { bubbles: true })); field.focus(); });
  });
  $$("[data-print]").forEach((button) => { button.hidden = false; button.addEventListener("click", () => window.print()); });
  $$("[data-all]").forEach((box) => box.addEventListener("change", () => $$(`input[name="${box.dataset.all}"]`).forEach((each) => { each.checked = box.checked; })));

  // --- keys ---
  const letters = $("#single-keys");
  if (letters) {
    letters.checked = localStorage.getItem("postroom-keys") !== "off";
    letters.addEventListener("change", () => localStorage.setItem("postroom-keys", letters.checked ? "on" : "off"));
  }
  const writes = (element) => element.closest("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      const form = event.target.closest("form"), main = form && $("button.main", form);
      if (main) { event.preventDefault(); main.click(); }
      return;
    }
    if (event.key === "Escape") {
      if (writes(event.target)) { event.target.blur(); return; }
      const back = $("[data-key=Escape]");
      if (back) back.click();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return;
    if (localStorage.getItem("postroom-keys") === "off") return;
    if (event.key === "/") { event.preventDefault(); $("#find")?.focus(); return; }
    if (event.key === "?") { $(".user")?.click(); return; }
    const found = /^[a-z]$/.test(event.key) && $(`[data-key="${event.key}"]`);
    if (found) { event.preventDefault(); found.click(); }
  });
})();
