"use strict";
const byId = (id) => document.getElementById(id);

/* theme: the system's choice, until the reader makes one */
const root = document.documentElement;
function wanted() {
  if (location.hash === "#dark" || location.hash === "#light") return location.hash.slice(1);
  try { return localStorage.getItem("heedful-theme") || ""; } catch { return ""; }
}
function isDark() {
  const chosen = root.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
if (wanted()) root.dataset.theme = wanted();
byId("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("heedful-theme", root.dataset.theme); } catch { /* kept for now only */ }
});

