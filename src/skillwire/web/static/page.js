// Keys, copying, search and the theme. Every page works without them.
//
// [data-theme-toggle]   a button: changes between light and dark
// [data-wrap]           a button: wraps the lines of the file
// [data-unfold]         a button in a row of a diff: shows the equal lines in the next part of the table
// form[data-submit]     a form that is sent when a selection changes
// [data-row]            a row for j and k; Enter opens its first link
// [data-copy]           a button: copies its value, or the text of the element that [data-copy-from] names
// [data-keys]           a button: shows the list of keys
// form[data-live]       a search form: while the user types, results replace the element with that id
"use strict";

const announcement = document.getElementById("announcement");

function announce(text) {
  if (announcement) announcement.textContent = text;
}

// Changes a part of the page, and keeps the focus on the same link.
function keepingFocus(part, change) {
  const active = part.contains(document.activeElement) && document.activeElement.getAttribute("href");
  change();
  if (active) [...part.querySelectorAll("a")].find((link) => link.getAttribute("href") === active)?.focus();
}

// Keys ------------------------------------------------------------------------------------------------------------

const keys = document.getElementById("keys");

function isTyping(target) {
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function rows() {
  return [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
}

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  const target = next.querySelector("a, button, input, summary");
  if (!target) next.tabIndex = -1; // a row without a link takes the focus itself
  (target || next).focus();
  next.scrollIntoView({ block: "nearest" });
}

function focusSearch() {
  const field = document.querySelector("input[type=search]");
  if (!field) return false;
  field.focus();
  field.select();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape" && isTyping(event.target)) return event.target.blur();
  if (event.key === "ArrowDown" && event.target.type === "search" && rows().length) {
    event.target.blur();
    move(1);
    return event.preventDefault();
  }
  if (isTyping(event.target) || (keys && keys.open)) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "/") focusSearch();
  else if (event.key === "?" && keys) keys.showModal();
  else return;
  event.preventDefault();
});

for (const button of document.querySelectorAll("[data-keys]")) {
  button.hidden = !keys;
  button.addEventListener("click", () => keys.showModal());
}

// Copying ---------------------------------------------------------------------------------------------------------

async function copy(button) {
  const source = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
  const text = source ? source.textContent : button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyTheOldWay(text); // the clipboard API needs https or localhost
  }
  button.classList.add("done");
  announce("Copied");
  setTimeout(() => button.classList.remove("done"), 1500);
}

function copyTheOldWay(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

function showCopying(within) {
  for (const button of within.querySelectorAll("[data-copy], [data-copy-from]")) button.classList.add("ready");
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (button) copy(button);
});
showCopying(document);

// Search while typing ---------------------------------------------------------------------------------------------

for (const form of document.querySelectorAll("form[data-live]")) {
  const field = form.querySelector("input[type=search]");
  const shown = document.getElementById(form.dataset.live);
  if (!field || !shown) continue;
  let timer, slow, asking, last = field.value;
  const listed = field.value.trim() ? "" : location.search; // the list before the search
  let searched = false;
  window.addEventListener("popstate", () => location.reload());

  // The query: the fields of the form, or the list from before if the search is empty.
  function wanted() {
    const words = new URLSearchParams(field.value.trim() ? "" : listed);
    for (const [name, value] of new FormData(form)) words.set(name, value);
    words.delete("done");
    return words;
  }

  function addressOf(words) {
    const isEmpty = !field.value.trim();
    const place = (isEmpty && form.dataset.home) || form.getAttribute("action");
    const query = new URLSearchParams([...words].filter(([, value]) => value)).toString();
    return query ? `${place}?${query}` : place;
  }

  function settle() {
    clearTimeout(slow);
    slow = undefined;
    delete form.dataset.slow;
    shown.removeAttribute("aria-busy");
    shown.dispatchEvent(new Event("settled", { bubbles: true }));
  }

  async function ask() {
    const words = field.value;
    if (words.trim() === last.trim()) return;
    last = words;
    if (asking) asking.abort();
    asking = new AbortController();
    shown.setAttribute("aria-busy", "true");
    slow = slow || setTimeout(() => (form.dataset.slow = ""), 300);
    const asked = wanted(), url = addressOf(asked);
    try {
      const answer = await fetch(`${form.getAttribute("action")}?${asked}&part=1`, { signal: asking.signal, credentials: "same-origin" });
      if (!answer.ok) return location.assign(url); // for example, to sign in again
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      keepingFocus(shown, () => shown.replaceChildren(...page.body.childNodes));
      showCopying(shown);
      if (searched) history.replaceState({ searched }, "", url);
      else history.pushState({ searched: (searched = true) }, "", url); // "Back" leads to the page before the search
      const summary = shown.querySelector("[data-summary]");
      announce(summary ? summary.dataset.summary || summary.textContent : "");
      settle();
    } catch (error) {
      if (error.name === "AbortError") return;
      const notice = document.createElement("p");
      notice.className = "error";
      notice.textContent = "The server did not respond. Press Enter to try again.";
      shown.style.minHeight = `${shown.offsetHeight}px`; // nothing below it moves
      shown.replaceChildren(notice);
      settle();
      last = "\0"; // try again with the next input
    }
  }

  // The first search of a large catalog creates the index. This starts when the field gets the focus.
  field.addEventListener("focus", () => fetch(`${form.getAttribute("action")}?q=skill&part=1`).catch(() => {}), { once: true });
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 120);
  });
}

// Selections, theme, lines ----------------------------------------------------------------

document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-submit] select")) event.target.form.requestSubmit();
});

for (const button of document.querySelectorAll("[data-theme-toggle]")) {
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    try {
      localStorage.setItem("skillwire-theme", root.dataset.theme);
    } catch {
      // The browser stores nothing: the choice ends with the page.
    }
    announce(`${root.dataset.theme} theme`);
  });
}

document.addEventListener("click", (event) => {
  const gap = event.target.closest("[data-unfold]")?.closest("tbody");
  if (!gap) return;
  gap.nextElementSibling.classList.remove("folded");
  gap.querySelector(".gap").remove();
});

for (const button of document.querySelectorAll("[data-wrap]")) {
  button.addEventListener("click", () => {
    const isWrapped = document.getElementById("source").classList.toggle("wrapped");
    button.setAttribute("aria-pressed", isWrapped);
  });
}

// Relative times ---------------------------------------------------------------------------

const SPANS = [[60, 1, "second"], [3600, 60, "minute"], [86400, 3600, "hour"], [2592000, 86400, "day"]];

function ago(then, now) {
  const distance = Math.abs(now - then);
  if (distance < 10) return "just now";
  for (const [bound, length, noun] of SPANS) {
    if (distance < bound) {
      const count = Math.floor(distance / length);
      const words = `${count} ${noun}${count === 1 ? "" : "s"}`;
      return now > then ? `${words} ago` : `in ${words}`;
    }
  }
  return null;
}

setInterval(() => {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const words = ago(Date.parse(time.dateTime) / 1000, Date.now() / 1000);
    if (words && words !== time.textContent) time.textContent = words;
  }
}, 30000);
