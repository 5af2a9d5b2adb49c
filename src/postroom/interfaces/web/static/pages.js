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

  // --- parts that change by themselves ---
  const said = $("#said");
  let lastSaid = 0;
  const announce = (text) => {
    if (said && Date.now() - lastSaid > 10000) { lastSaid = Date.now(); said.textContent = text; }
  };
  const keysOf = (part) => new Set($$("[data-row]", part).map((row) => row.dataset.row));
  let moved = 0;  // when the pointer was last on its way: nothing moves under it
  addEventListener("pointermove", () => { moved = Date.now(); });
  const aims = (part, next) => Date.now() - moved < 1500 && part.matches(":hover") && [...keysOf(part)].join() !== [...keysOf(next)].join();
  let looking = false, again = false;  // one at a time, so that no older answer comes last
  const refresh = async () => {
    if (looking) { again = true; return; }
    looking = true;
    await look().finally(() => { looking = false; });
    if (again) { again = false; refresh(); }
  };
  const look = async () => {
    if (!$("[data-live][id]")) return;
    const answer = await fetch(location.href, { headers: { "Postroom-Live": "1" } }).catch(() => null);
    if (!answer || answer.status === 429 || answer.status >= 500) return;  // the next change tries again
    if (!answer.ok || answer.redirected) { location.reload(); return; }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of $$("[data-live][id]")) {
      const next = fresh.getElementById(part.id);
      if (!next || next.isEqualNode(part)) continue;
      if (part.contains(document.activeElement) && document.activeElement !== document.body) offer(part, next);
      else if (aims(part, next)) setTimeout(refresh, 1000);
      else put(part, next);
    }
  };
  // what someone has ticked, chosen, written, opened or scrolled in a part is so in the new one
  const carry = (part, here) => {
    const rowOf = (each) => each.closest("[data-row]")?.dataset.row;
    const same = (selector, is) => $$(selector, part).map((old) => [old, $$(selector, here).find((each) => is(old, each))]).filter((pair) => pair[1]);
    for (const [old, each] of same("input[type=checkbox], input[type=radio]", (a, b) => a.name === b.name && a.value === b.value)) {
      if (old.checked !== old.defaultChecked) each.checked = old.checked;
    }
    for (const [old, each] of same("input:not([type=checkbox], [type=radio], [type=hidden]), textarea", (a, b) => a.name === b.name && rowOf(a) === rowOf(b))) {
      if (old.value !== old.defaultValue) each.value = old.value;
    }
    for (const [old, each] of same("details", (a, b) => rowOf(a) === rowOf(b))) each.open = old.open;
    for (const [old, each] of same(".scroll", (a, b) => a.getAttribute("aria-label") === b.getAttribute("aria-label"))) each.scrollLeft = old.scrollLeft;
  };
  const put = (part, next) => {
    const before = keysOf(part);
    const here = document.importNode(next, true);
    part.replaceWith(here);
    carry(part, here);
    const come = $$("[data-row]", here).filter((row) => !before.has(row.dataset.row));
    come.forEach((row) => row.classList.add("fresh"));
    if (come.length) announce(`${come.length} new`);
    return come[0] || here;
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
    button.onclick = () => {  // and the focus is at what is new
      const there = put(part, next);
      (there.matches("a, button") ? there : $("a, button", there))?.focus();
    };
  };
  const at = document.body.dataset.liveAt;
  if (at && window.EventSource) {
    const shown = $(".live");
    let source = null, due = null, seen = document.body.dataset.liveSeen;
    const listen = () => {
      source = new EventSource(`${at}&seen=${seen}`);  // what came since then is told at once
      source.addEventListener("changed", (event) => { seen = event.lastEventId; due = due || setTimeout(() => { due = null; refresh(); }, 150); });
      source.addEventListener("open", () => { shown.classList.remove("off"); $("span", shown).textContent = "live"; });
      source.addEventListener("error", () => {
        if (shown.classList.contains("off")) return;
        shown.classList.add("off");
        $("span", shown).textContent = `not live since ${new Date().toTimeString().slice(0, 5)}, trying again`;
      });
    };
    const rest = () => { source?.close(); source = null; };
    // A browser has six connections to a server: a page that nobody looks at leaves its own to the others.
    const turn = () => { if (document.visibilityState === "hidden") rest(); else if (!source) listen(); };
    document.addEventListener("visibilitychange", turn);
    addEventListener("pagehide", rest);
    addEventListener("pageshow", turn);
    turn();
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

  // --- a query that was changed is not the one that was asked ---
  $$("form[data-asks]").forEach((form) => form.addEventListener("input", (event) => {
    const meant = { some: "stations", number: "as-of" }[event.target.name];  // to fill a box is to mean it
    if (meant && event.target.value) form.elements.scope.value = meant;
    const isChanged = [...form.elements].some((each) => /^(radio|checkbox)$/.test(each.type) ? each.checked !== each.defaultChecked : each.value !== (each.defaultValue ?? each.value));
    $("[data-says-changed]", form).hidden = !isChanged;
  }));

  // --- drafts: what is typed is kept here until it is saved ---
  // To sign out forgets drafts. What stands on another open page then is kept in its tab alone, for the same user.
  const SIGNED_OUT = "postroom-signed-out";
  const draftOf = (name) => JSON.parse(localStorage.getItem(name) || sessionStorage.getItem(name) || "null");
  const forget = (name) => { localStorage.removeItem(name); sessionStorage.removeItem(name); };
  const drafted = $("form[data-draft]");
  const now = (field, text) => {  // below its line: what someone else has written there
    const told = Object.assign(document.createElement("p"), { className: "now", id: `${field.id}-now`, textContent: "It says now: " });
    told.append(Object.assign(document.createElement("span"), { textContent: text || "(nothing)" }));
    field.closest(".row").append(told);
    field.setAttribute("aria-describedby", told.id);
  };
  if (drafted) {
    const name = `postroom-draft ${$(".user").textContent} ${location.pathname}`, note = $("[data-draft-said]");
    const fields = () => $$("[data-field]", drafted), state = drafted.dataset.draft, seen = drafted.dataset.seen;
    const first = Object.fromEntries(fields().map((field) => [field.name, field.dataset.was ?? field.value]));
    const tell = (time) => {
      drafted.classList.toggle("unsaved", Boolean(time));  // print says so on the paper
      if (note) note.textContent = time ? `draft kept at ${time}` : "";
      $$("[data-needs-saved]").forEach((button) => { button.disabled = Boolean(time); });
      $$("[data-says-unsaved]").forEach((why) => { why.hidden = !time; });
    };
    // What was sent is kept until a page says that just this is saved: a session may have ended meanwhile.
    const sent = JSON.parse(sessionStorage.getItem("postroom-saving") || "null");
    sessionStorage.removeItem("postroom-saving");
    if (state === "saved") {
      if (sent && sent.seen === drafted.dataset.saved) forget(sent.name);
      const here = new URL(location.href);  // opened again, the address does not say so any more
      here.searchParams.delete("saved");
      history.replaceState(history.state, "", here);
    }
    let kept = draftOf(name);
    if (kept && state !== "sent" && kept.seen !== seen && Object.entries(kept.values).every(([field, text]) => first[field] === text)) {
      kept = null;  // all of it is saved
      forget(name);
    }
    if (kept && state === "sent") {  // the page has it, and what is wrong with it
      kept = { ...kept, seen, was: first };
      localStorage.setItem(name, JSON.stringify(kept));
      tell(kept.time);
    } else if (kept) {
      const said = $("[data-says-meanwhile]"), was = kept.was || {}, lost = [];
      for (const [sentAs, text] of Object.entries(kept.values)) {
        const field = fields().find((each) => each.name === sentAs);
        if (!field) { lost.push(`${sentAs.replace("field:", "")}: ${text}`); continue; }
        if (kept.seen !== seen && first[sentAs] !== was[sentAs] && first[sentAs] !== text) now(field, first[sentAs]);
        field.value = text;
      }
      if (said && kept.seen !== seen) {
        said.hidden = false;
        if (lost.length) $("span", said).textContent = `These were entered meanwhile, and are fixed; you wrote: ${lost.join("; ")}`;
      }
      tell(kept.time);
    }
    drafted.addEventListener("input", () => {
      const written = fields().filter((field) => field.value !== first[field.name]);
      const values = Object.fromEntries(written.map((field) => [field.name, field.value]));
      const time = new Date().toTimeString().slice(0, 5);
      // what it is based on stays as it was when each field was begun, so that a change by others is seen
      const was = Object.fromEntries(written.map((field) => [field.name, kept?.was?.[field.name] ?? first[field.name]]));
      kept = written.length ? { seen: kept?.seen ?? seen, values, was, time } : null;
      if (kept) localStorage.setItem(name, JSON.stringify(kept));
      else forget(name);
      tell(kept ? time : "");
    });
    drafted.addEventListener("submit", () => sessionStorage.setItem("postroom-saving", JSON.stringify({ name, seen })));
    addEventListener("storage", (event) => {
      if (event.key === SIGNED_OUT && kept) sessionStorage.setItem(name, JSON.stringify(kept));
    });
    $$("[data-undo]").forEach((button) => button.addEventListener("click", () => {
      forget(name);
      location.replace(location.pathname + location.search);  // what was sent is not sent again
    }));
  }
  // of a form that has left, what was typed is shown, to be copied
  const gone = $("[data-draft-gone][hidden]");
  const typed = gone && draftOf(`postroom-draft ${$(".user").textContent} ${location.pathname}`);
  if (typed) {
    for (const [field, text] of Object.entries(typed.values)) {
      const word = (kind, textContent, className) => Object.assign(document.createElement(kind), { textContent, className });
      $("dl", gone).append(word("dt", field.replace("field:", ""), ""), word("dd", text, "mono break"));
    }
    gone.hidden = false;
  }
  $$("form[data-forget]").forEach((form) => form.addEventListener("submit", () => {
    localStorage.setItem(SIGNED_OUT, String(Date.now()));  // other tabs hear of it
    [localStorage, sessionStorage].flatMap(Object.keys).filter((name) => name.startsWith("postroom-draft")).forEach(forget);
  }));
  // the page to sign in again says that a form that could not be sent is kept
  const unsent = $("[data-says-kept]") && JSON.parse(sessionStorage.getItem("postroom-saving") || "null");
  if (unsent && draftOf(unsent.name)) $("[data-says-kept]").hidden = false;

  // --- a field says what it takes; dates are picked ---
  document.addEventListener("focusin", (event) => {
    const field = event.target.closest("[data-field]"), status = field && $("[data-status]", field.closest(".paper"));
    if (status) {
      status.replaceChildren(Object.assign(document.createElement("b"), { textContent: field.dataset.label }), field.dataset.takes || "");
    }
  });
  // after something was done, the focus is at what came of it
  ($("[data-focus]") || $("[aria-invalid=true]"))?.focus();
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
  document.addEventListener("change", (event) => {
    const box = event.target.closest("[data-all]");
    if (box) $$(`input[type=checkbox][name="${box.dataset.all}"]`).forEach((each) => { each.checked = box.checked; });
  });

  // --- keys ---
  const letters = $("#single-keys");
  if (letters) {
    letters.checked = localStorage.getItem("postroom-keys") !== "off";
    letters.addEventListener("change", () => localStorage.setItem("postroom-keys", letters.checked ? "on" : "off"));
  }
  const writes = (element) => element.closest("input, textarea, select, [contenteditable]");
  // the main button of a form; else that of the field's line, or the only one; never one that cannot be undone
  const plain = (from) => from ? $$("button:not([type=button]):not(.danger)", from).filter((each) => !each.closest("details")) : [];
  const sends = (form, field) => {
    const beside = plain(field.closest(".pair")), all = plain(form);
    return $("button.main", form) || beside[0] || (all.length === 1 ? all[0] : null);
  };
  // Enter presses the button of the field's own line; none of danger, and from a tick none but the main one
  const entered = (event) => {
    const field = event.target, form = field.form;
    if (!form || !field.matches("input:not([type=submit], [type=button])")) return;
    const own = plain(field.closest(".pair"))[0], first = $("button:not([type=button])", form);
    const isTick = field.matches("[type=checkbox], [type=radio]"), isSafe = !first || (!first.matches(".danger") && !first.closest("details.sure"));
    if (!own && isSafe && (!isTick || !first || first.matches(".main"))) return;
    event.preventDefault();
    own?.click();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.isComposing) { entered(event); return; }
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      const form = event.target.closest("form");
      const main = form ? sends(form, event.target) : $("[data-ctrl-enter]");  // the one that says so, wherever the focus is
      if (main) { event.preventDefault(); main.click(); }
      return;
    }
    if (event.key === "Escape") {
      const asked = event.target.closest("details.sure[open]");
      if (asked) { asked.open = false; $("summary", asked).focus(); return; }
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
