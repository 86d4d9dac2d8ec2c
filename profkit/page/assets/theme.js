// Set before the first paint, so that the page does not flash in the other theme.
(function () {
  "use strict";
  var saved = null;
  try { saved = localStorage.getItem("profkit-theme"); } catch (error) { /* no storage here */ }
  var dark = saved ? saved === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
