// The theme that the user chose here, before the page is painted. Without a choice, that of the system.
// With "scripted", the page has the controls that need scripts from its first paint, so that nothing moves.
"use strict";
document.documentElement.classList.add("scripted");
try {
  const theme = localStorage.getItem("skillwire-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // The browser stores nothing: the system's theme is used.
}
