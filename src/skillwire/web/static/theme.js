// The theme that the user chose here, before the page is painted. Without a choice, that of the system.
"use strict";
try {
  const theme = localStorage.getItem("skillwire-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // The browser stores nothing: the system's theme is used.
}
