// What makes the desk live. Every page works without it, by reloading.
//
// [data-part]      a part of the page that can be asked for alone: an address, or what to add to the page's own
// [data-tell]      a part whose news are said to screen readers
// [data-over]      a part whose news lie over the page, so that they move nothing
// form[data-submit] a form that is sent as soon as something is chosen in it
"use strict";

(() => {
  const live = document.getElementById("live");
  const number = document.querySelector("meta[name=desk-number]")?.content;
  const title = document.title;
  let source, asking = null, again = false, missed = false;

  function tell(words) {
    if (!live || live.textContent === words) return;
    live.hidden = !words;
    live.textContent = words;
    if (words) say(words);
  }

  // Parts ---------------------------------------------------------------------------------------------------------

  const shown = new Map(); // what is in a part, so that nothing is replaced by itself

  function note(part) {
    shown.set(part, plain(part.innerHTML));
  }

  function addressOf(part) {
    const wanted = part.dataset.part;
    if (!wanted.startsWith("?")) return wanted;
    const words = new URLSearchParams(location.search);
    for (const [name, value] of new URLSearchParams(wanted)) words.set(name, value);
    words.delete("done");
    return `${location.pathname}?${words}`;
  }

  const FIELD = "textarea, select, input:not([type=checkbox])";

  // Somebody writes in it, or page.js has asked for it already: news wait until that is over.
  function isBusy(part) {
    const active = document.activeElement;
    return part.hasAttribute("aria-busy") || (part.contains(active) && active.matches(FIELD));
  }

  function put(part, nodes) {
    if (!part.hasAttribute("data-over")) return part.replaceChildren(...nodes);
    const over = document.createElement("div");
    over.className = "over";
    over.append(...nodes);
    part.style.minHeight = `${part.offsetHeight}px`;
    part.replaceChildren(over);
  }

  function replace(part, nodes) {
    const before = new Set([...part.querySelectorAll("[data-row] a")].map((link) => link.getAttribute("href")));
    keepingFocus(part, () => put(part, nodes));
    for (const row of part.querySelectorAll("[data-row]")) {
      const link = row.querySelector("a");
      if (link && !before.has(link.getAttribute("href"))) row.classList.add("fresh");
    }
    if (part.hasAttribute("data-tell") && !part.querySelector("[role]")) { // what has a role is said already
      const words = part.querySelector("[data-summary]")?.dataset.summary || part.querySelector("p")?.textContent;
      if (words) say(words.trim());
    }
  }

  function plain(html) {
    return html.replace(/<time[^>]*>[^<]*<\/time>/g, "").trim(); // minutes pass without anything having changed
  }

  async function renewPart(part) {
    const address = addressOf(part);
    if (isBusy(part)) return (missed = true);
    const answer = await fetch(address, { credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401) return tell(ENDED);
    if (answer.status === 503) setTimeout(renew, RETRY);
    if (!answer.ok) return;
    const html = await answer.text();
    if (isBusy(part)) return (missed = true);
    if (address !== addressOf(part)) return (again = true); // meanwhile, something else was looked for
    const page = new DOMParser().parseFromString(html, "text/html");
    const text = plain(page.body.innerHTML);
    if (shown.get(part) === text) return;
    replace(part, page.body.childNodes);
    shown.set(part, text);
  }

  async function renew() {
    if (asking) {
      again = true;
      return;
    }
    missed = false;
    asking = Promise.allSettled([...document.querySelectorAll("[data-part]")].map(renewPart));
    await asking;
    asking = null;
    const waiting = document.querySelector("[data-waiting]")?.dataset.waiting;
    document.title = waiting ? `(${waiting}) ${title}` : title;
    if (again) {
      again = false;
      renew();
    }
  }

  // Events --------------------------------------------------------------------------------------------------------

  const RETRY = 2000; // milliseconds
  const ENDED = "The desk has ended. Start it again, and use its new link.";
  let last = number, retry;

  function close() {
    clearTimeout(retry);
    source?.close();
  }

  function listen() {
    close();
    source = new EventSource("/events");
    source.addEventListener("changed", (event) => {
      tell("");
      if (event.data !== last) renew();
      last = event.data;
    });
    source.addEventListener("error", lost);
  }

  // A browser tries again by itself if nobody answers, but not after any answer that is no stream.
  async function lost() {
    last = undefined; // whatever was missed, and whoever counts now: everything is asked for again
    if (source.readyState !== EventSource.CLOSED) return tell("Not connected; trying again …");
    const here = source;
    const answer = await fetch("/waiting", { cache: "no-store" }).catch(() => null);
    if (here !== source || document.hidden) return;
    if (!answer) tell("Not connected; trying again …");
    else tell(answer.status === 401 ? ENDED : "The desk is busy; trying again …");
    retry = setTimeout(listen, RETRY);
  }

  document.addEventListener("settled", (event) => {
    note(event.target);
    if (missed) renew();
  });
  document.addEventListener("focusout", () => setTimeout(() => missed && renew()));

  // A browser has few connections for one place: pages that nobody looks at leave them to the others.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : listen()));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) listen();
  });
  window.addEventListener("pagehide", close);
  for (const part of document.querySelectorAll("[data-part]")) note(part);
  if (number !== undefined && !document.hidden) listen();

  // Choosing ------------------------------------------------------------------------------------------------------

  for (const select of document.querySelectorAll("form[data-submit] select")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }

  // Approving by key: after a question -------------------------------------------------------------------------------

  const form = document.getElementById("approve-form");
  const confirm = document.getElementById("confirm");

  function granted() {
    const ticked = [...form.querySelectorAll("[name=grant]:checked")].map((box) => box.value);
    const written = form.elements.more.value.split("\n").map((line) => line.trim()).filter(Boolean);
    return [...ticked, ...written].join(", ") || "nothing";
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "a" || !form || !confirm || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.defaultPrevented || event.target.matches(FIELD)) return;
    if (document.querySelector("dialog[open]")) return;
    document.getElementById("confirm-grants").textContent = granted();
    confirm.returnValue = "";
    confirm.showModal();
    event.preventDefault();
  });
  confirm?.addEventListener("close", () => {
    if (confirm.returnValue === "yes") form.requestSubmit(document.getElementById("approve"));
  });
})();
