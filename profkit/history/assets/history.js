(function () {
  "use strict";
  const byId = function (id) { return document.getElementById(id); };
  const root = document.documentElement;
  const data = JSON.parse(byId("data").textContent);
  const cards = Array.from(document.querySelectorAll(".card"));
  const list = byId("cards");

  function setTheme(name) {
    root.dataset.theme = name;
    byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  }
  setTheme(root.dataset.theme);
  byId("theme").addEventListener("click", function () {
    const name = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("profkit-theme", name); } catch (error) { /* no storage here */ }
    setTheme(name);
  });

  const names = cards.map(function (card) {
    return (card.querySelector("h2").textContent + " " + card.querySelector(".about").textContent).toLowerCase();
  });
  byId("search").addEventListener("input", function (event) {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    cards.forEach(function (card, number) {
      card.hidden = !words.every(function (word) { return names[number].includes(word); });
      shown += card.hidden ? 0 : 1;
    });
    byId("shown").textContent = shown;
  });

  const orders = {
    worst: function (a, b) { return a - b; },
    name: function (a, b) { return names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0; },
    latest: function (a, b) { return cards[b].dataset.latest - cards[a].dataset.latest || a - b; },
  };
  byId("order").addEventListener("change", function (event) {
    Array.from(cards.keys()).sort(orders[event.target.value]).forEach(function (number) {
      list.appendChild(cards[number]);
    });
  });

  // The run nearest to the pointer: its words below the drawing, a line at it.
  cards.forEach(function (card, number) {
    const drawing = card.querySelector("svg"), tip = card.querySelector(".tip");
    const cursor = card.querySelector(".cursor"), runs = tip.textContent;
    drawing.addEventListener("pointermove", function (event) {
      const box = drawing.getBoundingClientRect();
      const place = (event.clientX - box.left) / box.width * 300;
      const point = data[number].reduce(function (best, each) {
        return Math.abs(each[0] - place) < Math.abs(best[0] - place) ? each : best;
      });
      cursor.setAttribute("d", "M" + point[0] + ",0V84");
      tip.textContent = point[2];
    });
    drawing.addEventListener("pointerleave", function () {
      cursor.setAttribute("d", "");
      tip.textContent = runs;
    });
  });
})();
