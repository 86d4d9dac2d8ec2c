// Set before anything is drawn, so that the page does not flash in the other theme.
(function () {
  "use strict";
  var kept = null;
  try { kept = localStorage.getItem("profkit-theme"); } catch (error) { /* no storage here */ }
  var dark = kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
