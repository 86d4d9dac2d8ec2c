// Zoomable timelines: each element .timeline holds a canvas and its data as JSON.
(function () {
  "use strict";

  const COLORS = {
    // by kind: light, dark
    "GEMM": ["#1d5ea8", "#74acea"], "attention": ["#7a3ea1", "#c7a0ea"], "convolution": ["#2b3f8c", "#8fa3f0"],
    "norm": ["#1f7a4d", "#6cc793"], "softmax": ["#0f7d86", "#5fc9d2"], "elementwise": ["#8a7a1f", "#d8c866"],
    "reduction": ["#5b7a1f", "#a9cf63"], "optimizer": ["#a34a6b", "#e893b4"], "embedding, gather": ["#8c5a2b", "#d9a877"],
    "FFT": ["#2f6f5e", "#86c9b5"], "pooling": ["#7d6b8c", "#c4b3d3"],
    "sort": ["#5d6268", "#9ba2a9"], "random": ["#6f6a94", "#b3add8"], "copy": ["#3d8ea8", "#7fcbe3"],
    "communication": ["#ad2a22", "#f08a80"], "CUDA graph": ["#1d5ea8", "#74acea"], "other": ["#5f6a78", "#a3afbd"],
    "memory copy": ["#b25400", "#e8a15c"], "memset": ["#c99a5b", "#e6c594"],
    "NVTX range": ["#cdd6e2", "#3a4656"], "launch call": ["#7fa3cf", "#41658f"], "synchronization": ["#d7a3a0", "#7d4a47"],
    "memory allocation": ["#c7a0d0", "#6f4a78"], "copy call": ["#dfb98c", "#7d5c35"], "CUDA call": ["#bcc1c6", "#565d64"],
  };
  const ROW = 18, GAP = 6, TOP = 32, TITLE = 16;

  function words(ns) {
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
    const [size, unit] = units.find(([size]) => Math.abs(ns) >= size) || units[3];
    return (ns / size).toLocaleString("en-US", { maximumSignificantDigits: 4 }) + " " + unit;
  }

  function decoded(track) {
    let time = 0;
    const start = track.start.map((step) => (time += step));
    return { ...track, start, end: start.map((begin, place) => begin + track.length[place]) };
  }

  function timeline(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const canvas = root.querySelector("canvas"), tip = root.querySelector(".tip");
    const pen = canvas.getContext("2d");
    const tracks = data.tracks.map(decoded);
    let low = 0, high = data.span, width = 0, dark = false, marked = null;
    let y = TOP;
    for (const track of tracks) {
      track.top = y + TITLE;
      y = track.top + track.rows * ROW + GAP;
    }
    const height = y;

    function color(kind) {
      return (COLORS[kind] || COLORS.other)[dark ? 1 : 0];
    }

    function style(name, fallback) {
      return getComputedStyle(root).getPropertyValue(name).trim() || fallback;
    }

    function x(time) {
      return (time - low) / (high - low) * width;
    }

    function first(track, time) { // the first slice that may end after a time
      let left = 0, right = track.start.length;
      while (left < right) {
        const middle = (left + right) >> 1;
        if (track.start[middle] < time - track.longest) left = middle + 1; else right = middle;
      }
      return left;
    }

    function draw() {
      const scale = window.devicePixelRatio || 1;
      width = canvas.clientWidth;
      canvas.style.height = height + "px";
      if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
      }
      dark = document.documentElement.dataset.theme
        ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, height);
      const ink = style("--ink", dark ? "#e3e5e7" : "#1b1d20"), quiet = style("--quiet", dark ? "#9ba2a9" : "#5d6268");
      const line = style("--line", dark ? "#2d3237" : "#deded9"), strong = style("--strong-line", "#c4c4bd");
      pen.font = "11px system-ui, sans-serif";
      pen.textBaseline = "middle";
      axis(quiet, line);
      for (const step of data.steps) {
        if (step.time < low || step.time > high) continue;
        pen.fillStyle = strong;
        pen.fillRect(Math.round(x(step.time)), 0, 1, height);
        pen.fillStyle = ink;
        pen.fillText(step.name, x(step.time) + 4, 22);
      }
      for (const track of tracks) {
        pen.fillStyle = quiet;
        pen.fillText(track.name, 4, track.top - TITLE / 2);
        slices(track);
      }
    }

    function axis(quiet, line) {
      const rough = (high - low) / Math.max(2, width / 110);
      const power = Math.pow(10, Math.floor(Math.log10(rough)));
      const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
      for (let time = Math.ceil(low / step) * step; time <= high; time += step) {
        pen.fillStyle = line;
        pen.fillRect(Math.round(x(time)), 0, 1, height);
        pen.fillStyle = quiet;
        pen.fillText(words(time), x(time) + 4, 7);
      }
    }

    function slices(track) {
      const reached = new Array(track.rows).fill(-1);
      for (let place = first(track, low); place < track.start.length && track.start[place] < high; place++) {
        if (track.end[place] < low) continue;
        const row = track.row ? track.row[place] : 0;
        const left = Math.max(0, x(track.start[place])), right = Math.min(width, x(track.end[place]));
        if (right - left < 0.5 && left < reached[row]) continue; // no more than a slice a pixel
        const size = Math.max(right - left, 0.75), top = track.top + row * ROW;
        reached[row] = left + 0.75;
        pen.fillStyle = color(data.kinds[data.kind[track.name_of[place]]]);
        pen.fillRect(left, top, size > 3 ? size - 0.5 : size, ROW - 2);
        if (marked && marked.track === track && marked.place === place) {
          pen.strokeStyle = style("--ink", "#000");
          pen.strokeRect(left + 0.5, top + 0.5, Math.max(1, size - 1), ROW - 3);
        }
        if (size > 34) label(data.names[track.name_of[place]], left, top, size, track.light);
      }
    }

    function label(name, left, top, size, light) {
      const short = name.replace(/^void /, "").replace(/[<(].*$/s, "").replace(/^.*::/, "") || name;
      const fits = Math.floor((size - 8) / 6);
      pen.fillStyle = light !== dark ? "#15171a" : "#ffffff";
      pen.fillText(short.length > fits ? short.slice(0, Math.max(1, fits - 1)) + "…" : short, left + 4, top + ROW / 2 - 1);
    }

    function hit(event) {
      const box = canvas.getBoundingClientRect();
      const time = low + (event.clientX - box.left) / width * (high - low), near = 2 / width * (high - low);
      const height_of = event.clientY - box.top;
      for (const track of tracks) {
        const row = Math.floor((height_of - track.top) / ROW);
        if (row < 0 || row >= track.rows) continue;
        let best = null;
        for (let place = first(track, time - near); place < track.start.length && track.start[place] <= time + near; place++) {
          if ((track.row ? track.row[place] : 0) !== row || track.end[place] < time - near) continue;
          const away = Math.max(track.start[place] - time, time - track.end[place], 0);
          if (!best || away <= best.away) best = { track, place, away };
        }
        return best;
      }
      return null;
    }

    function show(found, event) {
      marked = found;
      tip.hidden = !found;
      if (found) {
        const { track, place } = found, number = track.name_of[place], kind = data.kinds[data.kind[number]];
        tip.replaceChildren();
        const name = document.createElement("b");
        name.textContent = data.names[number].slice(0, 300);
        tip.append(name, document.createElement("br"),
          `${kind}, ${words(track.length[place])}, at ${words(track.start[place])}`);
        const box = root.getBoundingClientRect();
        const left = Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 4);
        tip.style.left = Math.max(0, left) + "px";
        tip.style.top = event.clientY - box.top + 16 + "px";
      }
      draw();
    }

    function view(from, to) {
      const least = 200, size = Math.min(Math.max(to - from, least), data.span);
      low = Math.min(Math.max(0, from), data.span - size);
      high = low + size;
      draw();
    }

    function zoom(times, middle) {
      const center = middle === undefined ? (low + high) / 2 : middle;
      view(center - (center - low) * times, center + (high - center) * times);
    }

    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const moved = event.deltaX / width * (high - low);
        view(low + moved, high + moved);
      } else {
        zoom(Math.pow(1.0015, event.deltaY), low + (event.clientX - box.left) / width * (high - low));
      }
    }, { passive: false });

    const pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event.clientX);
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("dragged");
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!pointers.has(event.pointerId)) return show(hit(event), event);
      const before = [...pointers.values()];
      const moved = (event.clientX - pointers.get(event.pointerId)) / width * (high - low);
      pointers.set(event.pointerId, event.clientX);
      if (pointers.size === 1) return view(low - moved, high - moved);
      const now = [...pointers.values()];
      const apart = (ends) => Math.max(10, Math.abs(ends[0] - ends[1]));
      const left = canvas.getBoundingClientRect().left;
      zoom(apart(before) / apart(now), low + ((now[0] + now[1]) / 2 - left) / width * (high - low));
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => {
        pointers.delete(event.pointerId);
        canvas.classList.remove("dragged");
        if (event.pointerType === "touch") show(hit(event), event);
      });
    }
    canvas.addEventListener("pointerleave", (event) => show(null, event));
    canvas.addEventListener("dblclick", () => view(0, data.span));

    const moves = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => view(0, data.span),
      "w": () => zoom(0.5), "s": () => zoom(2), "Home": () => view(0, high - low), "End": () => view(data.span, data.span + high - low),
      "ArrowLeft": () => view(low - (high - low) / 4, high - (high - low) / 4), "ArrowRight": () => view(low + (high - low) / 4, high + (high - low) / 4),
    };
    moves.a = moves.ArrowLeft;
    moves.d = moves.ArrowRight;
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
    for (const button of root.querySelectorAll("button")) {
      button.addEventListener("click", () => moves[button.dataset.key]());
    }

    function keys() {
      const list = root.querySelector(".keys");
      list.replaceChildren(...data.kinds.map((kind) => {
        const item = document.createElement("span"), mark = document.createElement("i");
        mark.style.background = color(kind);
        item.append(mark, kind);
        return item;
      }));
    }
    function all() {
      draw();
      keys();
    }
    new ResizeObserver(draw).observe(canvas.parentElement);
    new MutationObserver(all).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
    all();
  }

  document.querySelectorAll(".timeline").forEach(timeline);
})();
