// What makes the desk live. Every page works without it, by reloading.
//
// [data-part]      a part of the page that can be asked for alone: an address, or what to add to the page's own
// [data-tell]      a part whose news are said to screen readers
// form[data-submit] a form that is sent as soon as something is chosen in it
"use strict";

(() => {
  const live = document.getElementById("live");
  const number = document.querySelector("meta[name=desk-number]")?.content;
  const title = document.title;
  let source, asking = null, again = false;

  function tell(words) {
    if (!live) return;
    live.hidden = !words;
    live.textContent = words;
  }

  // Parts ---------------------------------------------------------------------------------------------------------

  const shown = new Map(); // what was put into a part last, so that nothing is replaced by itself

  function addressOf(part) {
    const wanted = part.dataset.part;
    if (!wanted.startsWith("?")) return wanted;
    const words = new URLSearchParams(location.search);
    for (const [name, value] of new URLSearchParams(wanted)) words.set(name, value);
    words.delete("done");
    return `${location.pathname}?${words}`;
  }

  const FIELD = "textarea, select, input:not([type=checkbox])";

  function isBusy(part) {
    return part.contains(document.activeElement) && document.activeElement.matches(FIELD);
  }

  function replace(part, html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const active = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const before = new Set([...part.querySelectorAll("[data-row] a")].map((link) => link.getAttribute("href")));
    const first = !shown.has(part);
    part.replaceChildren(...page.body.childNodes);
    for (const row of part.querySelectorAll("[data-row]")) {
      const link = row.querySelector("a");
      if (!first && link && !before.has(link.getAttribute("href"))) row.classList.add("fresh");
      if (active && link && link.getAttribute("href") === active) link.focus();
    }
    if (part.hasAttribute("data-tell") && typeof say === "function") {
      const words = part.querySelector("[data-summary]")?.dataset.summary || part.querySelector("[role]")?.textContent;
      if (words) say(words.trim());
    }
  }

  function plain(html) {
    return html.replace(/<time[^>]*>[^<]*<\/time>/g, ""); // minutes pass without anything having changed
  }

  async function renewPart(part) {
    if (isBusy(part)) return;
    const answer = await fetch(addressOf(part), { credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401) return ended();
    if (!answer.ok) return;
    const html = await answer.text();
    if (shown.get(part) === plain(html) || isBusy(part)) return;
    replace(part, html);
    shown.set(part, plain(html));
  }

  async function renew() {
    if (asking) {
      again = true;
      return;
    }
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

  let last = number;

  function ended() {
    source?.close();
    tell("The desk has ended. Start it again, and use its new link.");
  }

  function listen() {
    source?.close();
    source = new EventSource("/events");
    source.addEventListener("changed", (event) => {
      tell("");
      if (event.data !== last) renew();
      last = event.data;
    });
    source.addEventListener("error", () => {
      tell(source.readyState === EventSource.CLOSED ? "The desk has ended." : "Not connected; trying again …");
    });
  }

  // A browser has few connections for one place: pages that nobody looks at leave them to the others.
  document.addEventListener("visibilitychange", () => (document.hidden ? source?.close() : listen()));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) listen();
  });
  window.addEventListener("pagehide", () => source?.close());
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
