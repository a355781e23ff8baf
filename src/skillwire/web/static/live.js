// Live updates. Every page works without them, by reloading.
//
// [data-part]      a part of the page that can be fetched alone: an address, or a query to add to that of the page
// [data-tell]      a part whose changes are announced to screen readers
// [data-over]      a part whose changes are shown above the page, so that nothing moves
// [data-notify]    a button: shows open questions as notifications of the browser
"use strict";

(() => {
  const live = document.getElementById("live");
  const number = document.querySelector("meta[name=live-number]")?.content;
  const title = document.title, BASE = document.body.dataset.base;
  let source, asking = null, again = false, missed = false;

  function tell(words) {
    if (!live || live.textContent === words) return;
    live.hidden = !words;
    live.textContent = words;
    if (words) announce(words);
  }

  // Parts ---------------------------------------------------------------------------------------------------------

  const shown = new Map(); // the content of each part, so that equal content is not replaced

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

  // The user types in the part, or page.js is loading it: updates wait until that is over.
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
    if (part.hasAttribute("data-tell") && !part.querySelector("[role]")) { // elements with a role are announced already
      const words = part.querySelector("[data-summary]")?.dataset.summary || part.querySelector("p")?.textContent;
      if (words) announce(words.trim());
    }
  }

  function plain(html) {
    return html.replace(/<time[^>]*>[^<]*<\/time>/g, "").trim(); // times change without a change of the content
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
    if (address !== addressOf(part)) return (again = true); // the filter changed meanwhile
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
    tellWaiting(Number(waiting || 0));
    if (again) {
      again = false;
      renew();
    }
  }

  // Events --------------------------------------------------------------------------------------------------------

  const RETRY = 2000; // milliseconds
  const ENDED = document.body.dataset.ended || "Not connected. Reload the page.";
  let last = number, retry;

  function close() {
    clearTimeout(retry);
    source?.close();
  }

  function listen() {
    close();
    source = new EventSource(`${BASE}/events`);
    source.addEventListener("changed", (event) => {
      tell("");
      if (event.data !== last) renew();
      last = event.data;
    });
    source.addEventListener("error", lost);
  }

  // A browser reconnects after a lost connection, but not after a response that is not a stream.
  async function lost() {
    last = undefined; // events may be missed and the desk may be a new one: fetch everything again
    if (source.readyState !== EventSource.CLOSED) return tell("Not connected. Reconnecting …");
    const here = source;
    const answer = await fetch(`${BASE}/events`, { method: "HEAD", cache: "no-store" }).catch(() => null);
    if (here !== source || document.hidden) return;
    if (!answer) tell("Not connected. Reconnecting …");
    else tell(answer.status === 401 ? ENDED : "The server is busy. Trying again …");
    retry = setTimeout(listen, RETRY);
  }

  document.addEventListener("settled", (event) => {
    note(event.target);
    if (missed) renew();
  });
  document.addEventListener("focusout", () => setTimeout(() => missed && renew()));

  // A browser has few connections for one server: hidden pages close theirs, unless they show notifications.
  document.addEventListener("visibilitychange", () => (document.hidden && !mayNotify() ? close() : listen()));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) listen();
  });
  window.addEventListener("pagehide", close);
  for (const part of document.querySelectorAll("[data-part]")) note(part);
  if (number !== undefined && !document.hidden) listen();

  // Notifications ---------------------------------------------------------------------------------------------------

  const notify = document.querySelector("[data-notify]");
  let told = Number(document.querySelector("[data-waiting]")?.dataset.waiting || 0);

  function mayNotify() {
    return Boolean(notify) && "Notification" in window && Notification.permission === "granted";
  }

  function tellWaiting(count) {
    if (count > told && document.hidden && mayNotify()) {
      new Notification("skillwire", { body: `${count} waiting for your answer`, tag: "skillwire-waiting" });
    }
    told = count;
  }

  if (notify && "Notification" in window && Notification.permission === "default") {
    notify.hidden = false;
    notify.addEventListener("click", async () => {
      await Notification.requestPermission();
      notify.hidden = Notification.permission !== "default";
    });
  }

  // Approval by key, with confirmation -------------------------------------------------------------------------------

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
