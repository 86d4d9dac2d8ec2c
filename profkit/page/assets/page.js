// Interaction: check marks, sorting, filtering, charts, source views, printing.
(function () {
  "use strict";

  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [];
  const byId = (id) => document.getElementById(id);
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));

  function element(name, properties, children) {
    const node = document.createElement(name);
    Object.assign(node, properties || {});
    (children || []).forEach((child) => node.append(child));
    return node;
  }

  function stored(key) {
    try { return localStorage.getItem(key); } catch (error) { return null; }
  }

  function store(key, value) {
    try { localStorage.setItem(key, value); } catch (error) { /* no storage: lasts until the page is closed */ }
  }

  // --- Theme ------------------------------------------------------------------------------------

  function setTheme(name) {
    root.dataset.theme = name;
    byId("theme").textContent = name === "dark" ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", "Switch to the " + (name === "dark" ? "light" : "dark") + " theme");
    charts.forEach((chart) => chart.draw(chart.width));
  }

  function setUpTheme() {
    byId("theme").removeAttribute("aria-pressed");
    setTheme(root.dataset.theme);
    byId("theme").addEventListener("click", function () {
      const name = root.dataset.theme === "dark" ? "light" : "dark";
      store("profkit-theme", name);
      setTheme(name);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function (event) {
      if (!stored("profkit-theme")) setTheme(event.matches ? "dark" : "light");
    });
  }

  // --- Checklist --------------------------------------------------------------------------------

  function setUpChecklist() {
    const items = all(".item");
    if (!items.length) return;
    const key = "profkit:" + document.body.dataset.key;
    let ticked = [];
    try { ticked = JSON.parse(stored(key) || "[]"); } catch (error) { /* not ours */ }
    const done = new Set(Array.isArray(ticked) ? ticked : []);
    const show = function () {
      items.forEach(function (item) {
        const isDone = done.has(item.dataset.key);
        item.classList.toggle("done", isDone);
        item.querySelector("input").checked = isDone;
      });
      byId("done").textContent = items.filter((item) => done.has(item.dataset.key)).length;
    };
    items.forEach(function (item) {
      item.querySelector("input").addEventListener("change", function (event) {
        if (event.target.checked) done.add(item.dataset.key); else done.delete(item.dataset.key);
        store(key, JSON.stringify(Array.from(done)));
        show();
      });
    });
    byId("hide-done").addEventListener("change", (event) =>
      document.querySelector(".items").classList.toggle("hide-done", event.target.checked));
    show();
  }

  // --- Kernel table -----------------------------------------------------------------------------

  function setUpTable() {
    const table = byId("kernel-table");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    all("thead th", table).forEach(function (head, at) {
      head.querySelector("button").addEventListener("click", function () {
        const words = head.classList.contains("txt");
        const ascending = head.getAttribute("aria-sort") === "none"
          ? words || head.dataset.key === "rank" : head.getAttribute("aria-sort") === "descending";
        all("thead th", table).forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const value = (row) => row.cells[at].dataset.v;
        rows.sort((a, b) => compared(value(a), value(b), ascending));
        body.append(...rows);
      });
    });
    byId("filter").addEventListener("input", function (event) {
      const wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row) => { row.hidden = !wanted.every((word) => row.dataset.search.includes(word)); });
      byId("shown").textContent = rows.filter((row) => !row.hidden).length;
    });
  }

  // Numbers by value; unknown values come last in both orders.
  function compared(a, b, ascending) {
    if (a === "" || b === "") return (a === "") - (b === "");
    const numbers = !isNaN(a) && !isNaN(b);
    const order = numbers ? a - b : a < b ? -1 : a > b ? 1 : 0;
    return ascending ? order : -order;
  }

  // --- Charts -----------------------------------------------------------------------------------

  function whenSeen(target, make) {
    let drawn = false;
    const once = function () {
      if (!drawn && target.clientWidth) { drawn = true; make(); }
    };
    new IntersectionObserver(function (entries, observer) {
      if (entries.some((entry) => entry.isIntersecting)) { once(); if (drawn) observer.disconnect(); }
    }, { rootMargin: "400px" }).observe(target);
    target.profkitDraw = once;
  }

  function setUpRoofline() {
    const place = byId("roofline-chart");
    if (!place || !data.roofline) return;
    whenSeen(place, function () {
      const level = document.querySelector("#levels input:checked");
      const plot = profkitCharts.roofline(place, data.roofline, {
        level: level ? level.value : "dram",
        chosen: function (point) {
          if (point && byId("kernel-" + point.launch)) location.hash = "kernel-" + point.launch;
        },
      });
      charts.push(plot.chart);
      place.profkit = plot;
      const selection = byId("roofline-selection");
      const legend = byId("roofline-legend");
      const showLegend = (value) => { if (legend) legend.hidden = value !== "all"; };
      showLegend(level ? level.value : "");
      byId("levels").addEventListener("change", function (event) { plot.set({ level: event.target.value }); showLegend(event.target.value); });
      if (byId("precision")) byId("precision").addEventListener("change", (event) => plot.set({ precision: event.target.value }));
      byId("zoom-in").addEventListener("click", () => plot.zoom(0.6));
      byId("zoom-out").addEventListener("click", () => plot.zoom(1 / 0.6));
      byId("zoom-reset").addEventListener("click", () => plot.zoom(0));
      place.addEventListener("keydown", function (event) {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (step) { selection.textContent = plot.step(step); event.preventDefault(); }
        if (event.key === "Enter") plot.chosen();
        if (event.key === "Escape") { plot.leave(); selection.textContent = ""; }
        if (event.key === "+") plot.zoom(0.6);
        if (event.key === "-") plot.zoom(1 / 0.6);
        if (event.key === "0") plot.zoom(0);
      });
      place.addEventListener("blur", function () { plot.leave(); selection.textContent = ""; });
    });
  }

  function setUpCharts() {
    setUpRoofline();
    all("[data-timeline]").forEach((place) => whenSeen(place, () =>
      charts.push(profkitCharts.timeline(place, data.timelines[place.dataset.timeline]))));
    const latency = byId("latency-chart");
    if (latency) {
      whenSeen(latency, function () {
        const plot = profkitCharts.latency(latency, data.latency);
        charts.push(plot.chart);
        const showNote = () => { byId("latency-note").textContent = plot.note(); };
        const axis = byId("latency-axis");
        if (axis) {
          axis.querySelector("[value=" + (plot.common() ? "common" : "own") + "]").checked = true;
          axis.addEventListener("change", function (event) { plot.set({ common: event.target.value === "common" }); showNote(); });
        }
        showNote();
      });
    }
  }

  // --- Source views -----------------------------------------------------------------------------

  const FIRST_ROWS = 300;  // chosen: drawn without a noticeable delay
  const SAMPLES = 0;
  const COLUMNS = [["Executed", 1], ["Shared excess", 2], ["Global excess", 3], ["Live regs", 4]];
  const MEANING = {
    "Executed": "warp instructions executed", "Shared excess": "shared-memory wavefronts above the ideal number",
    "Global excess": "L2 sectors of global memory above the ideal number", "Live regs": "live registers per thread",
  };
  const views = new Map();

  function number(value) {
    return value === null || value === undefined ? "" : value.toLocaleString("en");
  }

  function sourceView(launch) {
    const key = String(launch);
    if (!views.has(key)) {
      const place = document.querySelector('[data-view="' + key + '"] .view');
      if (!place || !data.sources[key]) return null;
      views.set(key, newView(place, data.sources[key]));
    }
    return views.get(key);
  }

  function newView(place, source) {
    const state = {
      sass: !source.files.length, file: 0, heat: false, sampled: false, rows: FIRST_ROWS, here: 0, of: null,
    };
    const bar = element("div", { className: "view-bar" });
    const wrap = element("div", { className: "view-wrap", tabIndex: 0 });
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", "Lines or instructions with their samples");
    const more = element("button", { type: "button" });
    const notes = element("p", { className: "note" });
    place.append(stallSummary(source), bar, wrap, more, notes);
    more.addEventListener("click", function () { state.rows *= 4; draw(); });

    function rows() {
      const every = state.sass ? source.sass.map(sassRow) : source.files[state.file].lines.map(lineRow);
      let shown = state.sampled ? every.filter((row) => (row.counts && row.counts[SAMPLES] > 0) || row.ranks.length) : every;
      if (state.sass && state.of) shown = shown.filter((row) => row.file === state.of[0] && row.line === state.of[1]);
      if (state.heat) shown = shown.slice().sort((a, b) => (b.counts ? b.counts[SAMPLES] : -1) - (a.counts ? a.counts[SAMPLES] : -1));
      return shown;
    }

    function draw() {
      drawBar();
      const matching = rows();
      wrap.replaceChildren(viewTable(matching, state, source, show));
      more.hidden = matching.length <= state.rows;
      more.textContent = "Show more (" + (matching.length - state.rows).toLocaleString("en") + " rows not shown)";
      const remarks = source.notes.slice();
      if (state.sass && source.sass.length < source.instructions) {
        remarks.push(source.sass.length + " of " + source.instructions + " instructions shown: those with the fewest samples are omitted");
      }
      if (!state.sass && source.files[state.file].lines.length < source.files[state.file].of) {
        remarks.push("lines far from the kernel's code are omitted");
      }
      notes.textContent = remarks.join(". ");
    }

    function drawBar() {
      const parts = [];
      if (source.files.length) {
        parts.push(segments([["Source", false], ["SASS", true]], state.sass, function (value) {
          state.sass = value; state.of = null; state.rows = FIRST_ROWS; draw();
        }));
      }
      if (!state.sass && source.files.length > 1) {
        const select = element("select", {});
        select.setAttribute("aria-label", "File");
        source.files.forEach((file, at) => select.append(element("option", { value: at, textContent: file.name, selected: at === state.file })));
        select.addEventListener("change", function () { state.file = Number(select.value); state.rows = FIRST_ROWS; draw(); });
        parts.push(select);
      }
      if (state.sass && state.of) {
        const clear = element("button", { type: "button", textContent: source.files[state.of[0]].name + ":" + state.of[1] + " ×" });
        clear.setAttribute("aria-label", "Show the instructions of all lines");
        clear.addEventListener("click", function () { state.of = null; draw(); });
        parts.push(clear);
      }
      parts.push(toggle("Sort by samples", state.heat, (on) => { state.heat = on; draw(); }));
      parts.push(toggle("Sampled rows only", state.sampled, (on) => { state.sampled = on; draw(); }));
      bar.replaceChildren(...parts);
    }

    function show(change) {
      Object.assign(state, { heat: false, sampled: false, rows: change.here ? 1e9 : FIRST_ROWS }, change);
      draw();
      const row = wrap.querySelector("tr.here");
      if (row) wrap.scrollTop = Math.max(0, row.offsetTop - 160);
      wrap.focus({ preventScroll: true });
    }

    draw();
    return {
      line: function (file, line) {
        const at = source.files.findIndex((entry) => entry.name === file);
        if (at >= 0) show({ sass: false, file: at, here: line });
        else show({ sass: true, of: null, heat: true });
      },
    };
  }

  function lineRow(line) {
    return { at: line[0], line: line[0], text: line[1], counts: line[2], stalls: line[3] || [], ranks: line[4] || [] };
  }

  function sassRow(row, at) {
    return { at: at, address: row[0], text: row[1], counts: row[2], stalls: row[3], ranks: row[4], file: row[5], line: row[6] };
  }

  function segments(choices, chosen, pick) {
    const group = element("span", { className: "segments" });
    group.setAttribute("role", "group");
    choices.forEach(function ([label, value]) {
      const button = element("button", { type: "button", textContent: label });
      button.setAttribute("aria-pressed", String(value === chosen));
      if (value === chosen) button.style.cssText = "background: var(--accent); color: var(--surface)";
      button.addEventListener("click", () => pick(value));
      group.append(button);
    });
    return group;
  }

  function toggle(label, on, change) {
    const box = element("input", { type: "checkbox", checked: on });
    box.addEventListener("change", () => change(box.checked));
    return element("label", { className: "switch" }, [box, label]);
  }

  function stallSummary(source) {
    const total = source.stalls.reduce((sum, stall) => sum + stall[1], 0);
    const box = element("div", {});
    if (!total) return box;
    const strip = element("div", { className: "stall-sum" });
    strip.setAttribute("aria-hidden", "true");
    const key = element("p", { className: "stall-legend" });
    source.stalls.forEach(function ([reason, count], at) {
      const piece = element("i", {});
      piece.style.cssText = "flex: " + count + " 0 0; opacity: " + Math.max(0.15, 1 - 0.16 * at);
      strip.append(piece);
      if (at < 8) key.append(element("span", { textContent: source.reasons[reason] + " " + percent(count / total) }));
    });
    box.append(element("p", { className: "note", textContent: number(source.total[SAMPLES]) + " warp samples by stall reason" }), strip, key);
    return box;
  }

  function percent(share) {
    return (100 * share).toFixed(share < 0.1 ? 1 : 0) + "%";
  }

  function viewTable(rows, state, source, show) {
    const columns = COLUMNS.filter(([, at]) => rows.some((row) => row.counts && row.counts[at]));
    const hasStalls = rows.some((row) => row.stalls.length);
    const hasFindings = rows.some((row) => row.ranks.length);
    const most = rows.reduce((top, row) => Math.max(top, row.counts ? row.counts[SAMPLES] || 0 : 0), 0);
    const text = state.sass ? "SASS" : "Source";
    const heads = [state.sass ? "Address" : "Line", "Samples"].concat(
      hasFindings ? ["Finding"] : [], [text], hasStalls ? ["Stall reasons"] : [], columns.map(([label]) => label));
    const head = element("tr", {}, heads.map(function (label) {
      const cell = element("th", { scope: "col", textContent: label, title: MEANING[label] || "" });
      if (["Stall reasons", "Finding"].includes(label)) cell.className = "l";
      if (label === text) cell.className = "src";
      return cell;
    }));
    const body = element("tbody", {});
    let before = null;
    rows.slice(0, state.rows).forEach(function (row) {
      if (!state.sass && !state.heat && !state.sampled && before !== null && row.line !== before + 1) {
        body.append(element("tr", { className: "gap" }, [element("td", { colSpan: heads.length, textContent: "lines " + (before + 1) + " to " + (row.line - 1) })]));
      }
      before = row.line;
      body.append(viewRow(row, state, source, { counts: columns, hasStalls: hasStalls, hasFindings: hasFindings }, most, show));
    });
    return element("table", {}, [element("thead", {}, [head]), body]);
  }

  function viewRow(row, state, source, columns, most, show) {
    const line = element("tr", {});
    if (row.ranks.length) line.classList.add("blamed");
    if (state.here && !state.sass && row.line === state.here) line.classList.add("here");
    const samples = row.counts ? row.counts[SAMPLES] : null;
    const sampled = element("td", { className: "s" });
    if (samples) {
      const share = percent(samples / source.total[SAMPLES]).padStart(5);
      sampled.append(element("span", { className: "count", textContent: number(samples) + " " }), share);
    }
    if (samples && most) sampled.style.setProperty("--w", ((100 * samples) / most).toFixed(1) + "%");
    const stalls = row.stalls.map(([reason, count]) => source.reasons[reason] + " " + percent(samples ? count / samples : 0));
    line.append(placeCell(row, state, source, show), sampled);
    if (columns.hasFindings) line.append(findingCell(row.ranks));
    line.append(element("td", { className: "src" }, state.sass ? [row.text] : colored(row.text)));
    if (columns.hasStalls) line.append(element("td", { className: "st", textContent: stalls.slice(0, 2).join(", "), title: stalls.join(", ") }));
    columns.counts.forEach(([, at]) => line.append(element("td", { textContent: row.counts ? number(row.counts[at]) : "" })));
    return line;
  }

  function findingCell(ranks) {
    const cell = element("td", { className: "f l" });
    ranks.forEach(function (rank, at) {
      const item = byId("item-" + rank);
      const title = item ? item.querySelector(".title").textContent : "";
      const link = element("a", { href: "#item-" + rank, textContent: rank, title: title });
      link.setAttribute("aria-label", "finding " + rank);
      cell.append(...(at ? [", ", link] : [link]));
    });
    return cell;
  }

  // Comments, strings, numbers and keywords of CUDA C++ and Python, each in a span of its class.
  const TOKENS = /(\/\/.*|\/\*.*?(?:\*\/|$)|^\s*#(?!\s*(?:include|define|if|ifdef|ifndef|else|elif|endif|pragma|undef|error)\b).*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\b(?:0[xX][\da-fA-F]+|\d[\d.]*(?:[eE][-+]?\d+)?)[uUlLfF]*\b)|(^\s*#\s*\w+|\b(?:auto|bool|break|case|char|class|const|constexpr|continue|def|do|double|else|enum|extern|float|for|half|if|import|from|in|inline|int|long|namespace|not|and|or|return|short|signed|sizeof|static|struct|switch|template|typename|union|unsigned|using|void|volatile|while|with|yield|__global__|__device__|__host__|__shared__|__constant__|__restrict__|__launch_bounds__|__forceinline__|__syncthreads)\b)/g;

  function colored(text) {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(TOKENS)) {
      if (match.index > end) parts.push(text.slice(end, match.index));
      const name = match[1] ? "c" : match[2] ? "v" : "w";
      parts.push(element("span", { className: name, textContent: match[0] }));
      end = match.index + match[0].length;
    }
    parts.push(text.slice(end));
    return parts;
  }

  function placeCell(row, state, source, show) {
    const cell = element("td", { className: "at" });
    const hasLines = source.files.length > 0;
    const text = state.sass ? row.address : String(row.line);
    if (state.sass ? !hasLines || row.file < 0 || !row.line : !row.counts) {
      cell.textContent = text;
      return cell;
    }
    const button = element("button", { type: "button", textContent: text });
    button.title = state.sass ? source.files[row.file].name + ":" + row.line : "Show its instructions";
    button.addEventListener("click", function () {
      if (state.sass) show({ sass: false, file: row.file, here: row.line, of: null });
      else show({ sass: true, of: [state.file, row.line] });
    });
    cell.append(button);
    return cell;
  }

  function setUpSources() {
    all("details.source").forEach((place) => place.addEventListener("toggle", function () {
      if (place.open) sourceView(place.dataset.view);
    }));
    all("a[data-source]").forEach((link) => link.addEventListener("click", function (event) {
      const [launch, rest] = [link.dataset.source.split(":")[0], link.dataset.source.split(":").slice(1)];
      const line = Number(rest.pop());
      const place = document.querySelector('[data-view="' + launch + '"]');
      if (!place) return;
      event.preventDefault();
      reveal(place);
      place.open = true;
      sourceView(launch).line(rest.join(":"), line);
      place.scrollIntoView({ block: "start" });
    }));
  }

  // --- Navigation --------------------------------------------------------------------------

  function reveal(target) {
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  }

  function setUpLinks() {
    const go = function () {
      const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
      if (!target) return;
      reveal(target);
      const inner = target.querySelector(":scope > details");
      if (inner && target.classList.contains("item")) inner.open = true;
      target.scrollIntoView({ block: "start" });
    };
    const links = new Map(all(".rail a").map((link) => [link.getAttribute("href").slice(1), link]));
    const visible = new Set();
    let chosen = "";  // the section of a followed link: near the end of the page it can't reach the top
    const mark = function () {
      const current = chosen || Array.from(links.keys()).find((id) => visible.has(id));
      links.forEach((link, id) => { if (id === current) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current"); });
    };
    const choose = function () {
      const id = decodeURIComponent(location.hash.slice(1));
      chosen = links.has(id) ? id : "";
      mark();
    };
    const release = function () { if (chosen) { chosen = ""; mark(); } };
    const observer = new IntersectionObserver(function (entries) {
      entries.forEach((entry) => { if (entry.isIntersecting) visible.add(entry.target.id); else visible.delete(entry.target.id); });
      mark();
    }, { rootMargin: "-100px 0px -55% 0px" });
    links.forEach(function (link, id) {
      if (byId(id)) observer.observe(byId(id));
      link.addEventListener("click", function () { chosen = id; mark(); });
    });
    addEventListener("hashchange", function () { go(); choose(); });
    ["wheel", "touchmove"].forEach((name) => addEventListener(name, release, { passive: true }));
    addEventListener("keydown", function (event) {
      if (["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", " "].includes(event.key)) release();
    });
    go();
    choose();
  }

  // --- Printing -----------------------------------------------------------------------------------

  const PRINT_WIDTH = 700;  // pixels: A4 less its margins of 12 mm at 96 dpi
  const KERNELS_PRINTED = 3;  // chosen: a page of paper each

  // Prints open sections, the whole checklist and the kernels with the most time.
  function toOpen() {
    const kernels = all("details.kernel").slice(0, KERNELS_PRINTED);
    return all(".items details").concat(kernels).filter((place) => !place.open);
  }

  function setUpPrinting() {
    let before = null;
    addEventListener("beforeprint", function () {
      if (before) return;
      before = { theme: root.dataset.theme, closed: toOpen() };
      before.closed.forEach((place) => { place.open = true; });
      all(".chart").forEach((place) => { if (place.profkitDraw) place.profkitDraw(); });
      root.dataset.theme = "light";
      charts.forEach((chart) => chart.draw(Math.min(PRINT_WIDTH, chart.width)));
    });
    addEventListener("afterprint", function () {
      if (!before) return;
      before.closed.forEach((place) => { place.open = false; });
      root.dataset.theme = before.theme;
      before = null;
      charts.forEach((chart) => chart.draw());
    });
  }

  setUpTheme();
  setUpChecklist();
  setUpTable();
  setUpCharts();
  setUpSources();
  setUpLinks();
  setUpPrinting();
})();
