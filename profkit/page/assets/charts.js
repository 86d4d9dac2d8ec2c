// The page's charts. Text of a report is set through textContent or the chart's
// own text, never through markup.
const profkitCharts = (function () {
  "use strict";

  const LEVELS = { dram: "DRAM", l2: "L2", l1: "L1" };
  const SYMBOLS = { dram: "circle", l2: "diamond", l1: "triangle" };
  const NARROW = 620;  // pixels; chosen: labels on the left of a chart leave two thirds of it above this width
  const MANY_DOTS = 2500;  // chosen: a canvas above this, one SVG element per dot below
  const FAR = 6;  // interquartile ranges; chosen: keeps normal noise on the axis, 8 standard deviations
  const APART = 2.5;  // ratio of medians; chosen: beyond it a common linear axis hides the spread of each
  const SMALL = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const LARGE = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue("--" + name).trim();
    return {
      ink: get("ink"), quiet: get("quiet"), line: get("line"), strong: get("strong-line"),
      surface: get("surface"), bg: get("bg"), sunk: get("sunk"), accent: get("accent"), bad: get("bad"),
      levels: { dram: get("level-dram"), l2: get("level-l2"), l1: get("level-l1") },
      mono: get("mono"), sans: get("sans"),
      faint: (alpha) => "rgba(" + get("accent-rgb") + ", " + alpha + ")",
    };
  }

  function digits(value, most) {
    return Number(value.toPrecision(most)).toLocaleString("en", { maximumSignificantDigits: most });
  }

  function scaled(value, unit, scale, most) {
    if (value === 0) return "0 " + unit;
    const step = scale.find((entry) => Math.abs(value) >= entry[0] * 0.99995) || scale[scale.length - 1];
    return digits(value / step[0], most || 4) + " " + step[1] + unit;
  }

  function shorten(text, most) {
    if (text.length <= most) return text;
    const tail = Math.floor((most - 1) / 3);
    return text.slice(0, most - 1 - tail) + "…" + text.slice(text.length - tail);
  }

  function tip(heading, rows) {
    const box = document.createElement("div");
    box.className = "tip";
    const title = document.createElement("b");
    title.textContent = heading;
    box.append(title);
    for (const [label, value] of rows) {
      const row = document.createElement("div");
      for (const text of [label, value]) {
        const span = document.createElement("span");
        span.textContent = text;
        row.append(span);
      }
      box.append(row);
    }
    return box;
  }

  function tooltip(look, more) {
    return Object.assign({
      confine: true, backgroundColor: look.surface, borderColor: look.strong, borderWidth: 1,
      padding: [8, 10], transitionDuration: 0, textStyle: { color: look.ink },
      extraCssText: "box-shadow: 0 2px 10px rgba(0,0,0,.14); border-radius: 4px;",
    }, more);
  }

  function axisLook(look) {
    return {
      axisLine: { show: true, lineStyle: { color: look.strong } },
      axisTick: { show: false },
      axisLabel: { color: look.quiet, fontFamily: look.sans, fontSize: 11, hideOverlap: true },
      splitLine: { lineStyle: { color: look.line, width: 1 } },
      nameTextStyle: { color: look.quiet, fontFamily: look.sans, fontSize: 12 },
    };
  }

  // A chart that is redrawn from `option(width, look)` when its width or the theme changes.
  function chart(element, option, renderer) {
    const instance = echarts.init(element, null, { renderer: renderer || "svg" });
    const drawing = {
      instance: instance,
      width: 0,
      draw: function (width) {
        drawing.width = width || element.clientWidth;
        const wanted = option(drawing.width, theme());
        if (wanted.height) element.style.height = wanted.height + "px";
        instance.resize({ width: drawing.width, height: wanted.height || element.clientHeight });
        instance.setOption(Object.assign({ animation: false }, wanted.option), { notMerge: true });
      },
    };
    drawing.draw();
    new ResizeObserver(function () {
      if (element.clientWidth && Math.abs(element.clientWidth - drawing.width) > 1) drawing.draw();
    }).observe(element);
    return drawing;
  }

  // --- Roofline -------------------------------------------------------------------------------

  function extent(data) {
    const xs = data.points.map((point) => point.x);
    const ys = data.points.map((point) => point.y);
    const compute = data.roofs.filter((roof) => !roof.memory).map((roof) => roof.rate);
    const memory = data.roofs.filter((roof) => roof.memory).map((roof) => roof.rate);
    const top = Math.max.apply(null, compute.concat(ys));
    const both = compute.length && memory.length;
    const last = both ? top / Math.min.apply(null, memory) : 0;
    const first = both ? Math.min.apply(null, compute) / Math.max.apply(null, memory) : Infinity;
    // two decades at least, and the slope of the memory roof: one point alone spans neither
    const low = Math.min(first, Math.min.apply(null, xs)) / 3;
    return {
      x: [low, Math.max(last * 3, Math.max.apply(null, xs) * 3, low * 100)],
      y: [Math.min(Math.min.apply(null, ys) / 4, top / 40), top * 2.5],
    };
  }

  function roofLines(data, state, box, look, angle, along) {
    const shown = state.level === "all" ? Object.keys(LEVELS) : [state.level];
    const memory = data.roofs.filter((roof) => roof.memory && shown.includes(roof.key));
    const used = new Set(visible(data, state).map((point) => point.roof));
    const compute = data.roofs.filter((roof) => !roof.memory && (!state.precision || used.has(roof.key)));
    const top = Math.max.apply(null, compute.map((roof) => roof.rate).concat([0])) || box.y[1];
    const fastest = Math.max.apply(null, memory.map((roof) => roof.rate).concat([0]));
    const series = [];
    memory.forEach(function (roof, at) {
      const start = Math.max(box.x[0], box.y[0] / roof.rate);
      const end = Math.min(box.x[1], top / roof.rate);
      const place = Math.pow(end / start, Math.min(0.5, 70 / Math.max(1, along(start, end))) + 0.1 * at);
      const color = state.level === "all" ? look.levels[roof.key] : look.strong;
      series.push(line([[start, start * roof.rate], [end, end * roof.rate]], color, 1.5));
      series.push(word([start * place, start * place * roof.rate], roof.text, look, { rotate: angle, position: "top", distance: 4 }));
    });
    compute.forEach(function (roof) {
      const start = fastest ? roof.rate / fastest : box.x[0];
      series.push(line([[Math.max(start, box.x[0]), roof.rate], [box.x[1], roof.rate]], look.strong, 1.5));
      series.push(word([box.x[1], roof.rate], roof.text, look, { align: "right", verticalAlign: "bottom", offset: [-4, -3] }));
      if (memory.length === 1) {
        const ridge = roof.rate / memory[0].rate;
        series.push(mark([ridge, roof.rate], look, "ridge point: " + roof.text + ", " + memory[0].text, ridge));
      }
    });
    return series;
  }

  function line(data, color, width, type) {
    return {
      type: "line", data: data, silent: true, showSymbol: false, clip: true, z: 1,
      lineStyle: { color: color, width: width, type: type || "solid" }, tooltip: { show: false },
    };
  }

  function word(at, text, look, label) {
    return {
      type: "scatter", data: [at], symbolSize: 0, silent: true, z: 2, clip: true,
      label: Object.assign({ show: true, formatter: () => text, position: "inside", color: look.quiet, fontFamily: look.sans, fontSize: 11 }, label),
    };
  }

  function mark(at, look, heading, ridge) {
    return {
      type: "scatter", data: [at], symbol: "circle", symbolSize: 6, z: 2, cursor: "default",
      itemStyle: { color: look.surface, borderColor: look.strong, borderWidth: 1.5 },
      tooltip: { formatter: () => tip(heading, [["arithmetic intensity", digits(ridge, 4) + " FLOP/B"]]) },
    };
  }

  function visible(data, state) {
    return data.points.filter((point) =>
      (state.level === "all" || point.level === state.level) && (!state.precision || point.precision === state.precision));
  }

  // Labels of points, those with the most time first; a label without room is omitted.
  function names(points, state, box, area, narrow) {
    const part = (value, range, low, high) => {
      const share = Math.log(value / range[0]) / Math.log(range[1] / range[0]);
      return (share - low / 100) / ((high - low) / 100);
    };
    const taken = [];
    const labels = new Map();
    const at = points.map((point) => [
      area.left + area.width * part(point.x, box.x, state.zoom[0], state.zoom[1]),
      area.top + area.height * (1 - part(point.y, box.y, state.zoom[2], state.zoom[3])),
    ]);
    points.forEach((point, index) => { if (!point.algorithmic) taken.push(around(at[index], radius(point))); });
    const order = points.map((_, index) => index).filter((index) => !points[index].algorithmic)
      .sort((a, b) => points[b].share - points[a].share);
    const named = new Set();
    const used = new Set();
    order.forEach(function (index) {
      const point = points[index];
      if (named.has(point.full + point.launch) || named.size >= (narrow ? 5 : 12)) return;
      const text = (narrow ? [18, 26, 34] : [34]).map((length) => shorten(point.name, length))
        .find((name) => !used.has(name));
      if (!text) return;
      const width = text.length * 6.8;
      const gap = radius(point) + 5;
      const [x, y] = at[index];
      const places = {
        right: [x + gap, y - 7, x + gap + width, y + 7], left: [x - gap - width, y - 7, x - gap, y + 7],
        top: [x - width / 2, y - gap - 14, x + width / 2, y - gap], bottom: [x - width / 2, y + gap, x + width / 2, y + gap + 14],
      };
      const sides = state.level === "all" ? ["top", "bottom", "right", "left"] : ["right", "left", "top", "bottom"];
      const side = sides.find((name) => inside(places[name], area) && !taken.some((box) => overlap(box, places[name])));
      if (!side) return;
      named.add(point.full + point.launch);
      used.add(text);
      taken.push(places[side]);
      labels.set(point, { side: side, text: text });
    });
    return labels;
  }

  const around = (at, by) => [at[0] - by, at[1] - by, at[0] + by, at[1] + by];
  const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  const inside = (box, area) => box[0] >= area.left && box[2] <= area.left + area.width && box[1] >= area.top && box[3] <= area.top + area.height;
  const radius = (point) => Math.max(8, 46 * Math.sqrt(point.share || 0)) / 2;

  function pointItem(point, look, label, level) {
    const color = point.flags.length ? look.bad : level === "all" ? look.levels[point.level] : look.accent;
    return {
      value: [point.x, point.y],
      symbol: SYMBOLS[point.level],
      symbolSize: 2 * radius(point),
      itemStyle: point.algorithmic
        ? { color: "transparent", borderColor: color, borderWidth: 1.5, borderType: [3, 2] }
        : { color: point.flags.length ? "rgba(0,0,0,0)" : color + "8c", borderColor: color, borderWidth: point.flags.length ? 2 : 1 },
      label: {
        show: Boolean(label), formatter: () => (label ? label.text : ""), position: label ? label.side : "right", distance: 5,
        color: look.ink, fontFamily: look.mono, fontSize: 11, textBorderColor: look.bg, textBorderWidth: 3,
      },
      emphasis: { scale: 1.15, itemStyle: { borderColor: look.ink, borderWidth: 2 } },
    };
  }

  // Joins a kernel's points across levels, and its algorithmic intensity to its measured one.
  function joints(points, state, look) {
    const kernels = new Map();
    points.forEach(function (point) {
      const key = point.full + "\n" + point.launch + "\n" + point.precision;
      kernels.set(key, (kernels.get(key) || []).concat([point]));
    });
    const series = [];
    kernels.forEach(function (own) {
      const real = own.filter((point) => !point.algorithmic);
      const declared = own.find((point) => point.algorithmic);
      const pairs = (points) => points.map((point) => [point.x, point.y]);
      if (real.length > 1) series.push(line(pairs(real), look.faint(0.5), 1));
      if (declared && real.length) series.push(line(pairs([real[0], declared]), look.faint(0.5), 1, "dashed"));
    });
    points.forEach(function (point) {
      if (point.low && point.high) series.push(line([[point.x, point.low], [point.x, point.high]], look.ink, 2));
    });
    return series;
  }

  function roofline(element, data, hooks) {
    const state = { level: hooks.level, precision: "", zoom: [0, 100, 0, 100] };
    const box = extent(data);
    const decades = (range) => Math.log10(range[1] / range[0]);
    const plot = chart(element, function (width, look) {
      const narrow = width < NARROW;
      const grid = { left: narrow ? 44 : 62, right: 14, top: 18, bottom: 44 };
      const high = element.clientHeight - grid.top - grid.bottom;
      const wide = width - grid.left - grid.right;
      const angle = (Math.atan((high / decades(box.y)) / (wide / decades(box.x))) * 180) / Math.PI;
      const along = (start, end) => Math.log10(end / start) * Math.hypot(wide / decades(box.x), high / decades(box.y));
      const points = visible(data, state);
      const area = { left: grid.left, top: grid.top, width: wide, height: high };
      const labels = names(points, state, box, area, narrow);
      const items = points.map((point) => pointItem(point, look, labels.get(point), state.level));
      const axis = (range, name, gap) => Object.assign(axisLook(look), {
        type: "log", min: range[0], max: range[1], name: name, nameLocation: "middle", nameGap: gap,
        axisLabel: Object.assign(axisLook(look).axisLabel, { formatter: axisWord, showMinLabel: false, showMaxLabel: false }),
      });
      const zoom = (at, axisName, start, end) => ({
        id: "zoom" + at, type: "inside", [axisName]: 0, filterMode: "none", zoomOnMouseWheel: "ctrl",
        moveOnMouseMove: true, moveOnMouseWheel: false, preventDefaultMouseMove: false, start: start, end: end,
      });
      return {
        option: {
          textStyle: { fontFamily: look.sans },
          grid: grid,
          tooltip: tooltip(look, { trigger: "item" }),
          xAxis: axis(box.x, "arithmetic intensity (FLOP/B)", 28),
          yAxis: axis(box.y, narrow ? "" : "performance (FLOP/s)", 46),
          dataZoom: [zoom(0, "xAxisIndex", state.zoom[0], state.zoom[1]), zoom(1, "yAxisIndex", state.zoom[2], state.zoom[3])],
          series: roofLines(data, state, box, look, angle, along).concat(joints(points, state, look), [{
            id: "points", type: "scatter", data: items, z: 5, clip: true,
            tooltip: { formatter: (at) => tip(points[at.dataIndex].full, points[at.dataIndex].facts) },
          }]),
        },
      };
    });
    let current = -1;
    let settling = 0;
    plot.instance.on("datazoom", function () {
      const [x, y] = plot.instance.getOption().dataZoom;
      state.zoom = [x.start, x.end, y.start, y.end];
      clearTimeout(settling);
      settling = setTimeout(() => plot.draw(plot.width), 250);
    });
    plot.instance.on("click", function (at) {
      if (at.seriesId === "points") hooks.chosen(visible(data, state)[at.dataIndex]);
    });
    return {
      chart: plot,
      set: function (change) { Object.assign(state, change); current = -1; plot.draw(); },
      zoom: function (factor) {
        const around = (low, high) => {
          const half = Math.min(50, ((high - low) / 2) * factor);
          const middle = Math.min(100 - half, Math.max(half, (low + high) / 2));
          return [middle - half, middle + half];
        };
        state.zoom = factor === 0 ? [0, 100, 0, 100]
          : around(state.zoom[0], state.zoom[1]).concat(around(state.zoom[2], state.zoom[3]));
        plot.draw();
      },
      step: function (by) {
        const points = visible(data, state);
        if (!points.length) return "";
        current = (current + by + points.length) % points.length;
        plot.instance.dispatchAction({ type: "downplay", seriesId: "points" });
        plot.instance.dispatchAction({ type: "highlight", seriesId: "points", dataIndex: current });
        plot.instance.dispatchAction({ type: "showTip", seriesIndex: plot.instance.getOption().series.length - 1, dataIndex: current });
        const point = points[current];
        return point.name + ": " + point.facts.slice(0, 3).map((pair) => pair.join(" ")).join(", ");
      },
      leave: function () {
        plot.instance.dispatchAction({ type: "downplay", seriesId: "points" });
        plot.instance.dispatchAction({ type: "hideTip" });
      },
      chosen: () => hooks.chosen(visible(data, state)[current]),
      // The position of a point in pixels of the chart, for tests and other scripts.
      where: function (name) {
        const points = visible(data, state);
        const point = points.find((candidate) => candidate.full.includes(name));
        return point ? plot.instance.convertToPixel({ gridIndex: 0 }, [point.x, point.y]) : null;
      },
    };
  }

  function axisWord(value) {
    if (value < 1) return digits(value, 3);
    return scaled(value, "", LARGE, 3).replace(" ", "").trim();
  }

  // --- Timelines ------------------------------------------------------------------------------

  function phaseAreas(data, look) {
    return data.phases.filter((phase) => phase.name !== "steady").map((phase) => [
      { xAxis: phase.start, itemStyle: { color: look.sunk, borderColor: look.line, borderWidth: 1 } }, { xAxis: phase.end },
    ]);
  }

  function trackWord(track, value) {
    if (value === null || value === undefined) return "n/a";
    return track.share ? (100 * value).toFixed(1) + "%" : digits(value, 4);
  }

  function timeline(element, data) {
    return chart(element, function (width, look) {
      const narrow = width < NARROW;
      const rowHeight = narrow ? 58 : 46;
      const top = (at) => 6 + at * rowHeight + (narrow ? 16 : 0);
      const count = data.tracks.length;
      const left = narrow ? 8 : 172;
      const grids = data.tracks.map((_, at) => ({ left: left, right: 46, top: top(at), height: narrow ? 36 : 38 }));
      const last = (at) => at === count - 1;
      return {
        height: top(count - 1) + 38 + 30,
        option: {
          textStyle: { fontFamily: look.sans },
          title: data.tracks.map((track, at) => ({
            text: track.label, left: 0, top: narrow ? top(at) - 17 : top(at) + 10, padding: 0,
            textStyle: { color: track.name === data.driver ? look.ink : look.quiet, fontSize: 12, fontWeight: track.name === data.driver ? 600 : 400, fontFamily: look.sans },
          })),
          grid: grids,
          axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: look.quiet, type: "solid", width: 1 } },
          tooltip: tooltip(look, {
            trigger: "axis",
            formatter: function (items) {
              const at = items[0].axisValue;
              return tip(scaled(at, "s", SMALL), data.tracks.map((track) => [track.label, trackWord(track, valueAt(track, data.times[track.t], at))]));
            },
          }),
          xAxis: data.tracks.map((_, at) => Object.assign(axisLook(look), {
            type: "value", gridIndex: at, min: 0, max: data.end, splitLine: { show: false },
            axisLabel: Object.assign(axisLook(look).axisLabel, { show: last(at), showMaxLabel: false, formatter: (value) => scaled(value, "s", SMALL, 3) }),
            axisPointer: { label: { show: false } },
          })),
          yAxis: data.tracks.map((track, at) => Object.assign(axisLook(look), {
            type: "value", gridIndex: at, min: 0, max: track.share ? 1 : topOf(track), interval: track.share ? 1 : topOf(track), position: "right",
            axisLine: { show: false }, splitLine: { show: false },
            axisLabel: Object.assign(axisLook(look).axisLabel, {
              fontSize: 10, showMinLabel: false, verticalAlign: "top", formatter: (value) => (track.share ? "100%" : digits(value, 3)),
            }),
          })),
          series: data.tracks.map((track, at) => ({
            type: "line", xAxisIndex: at, yAxisIndex: at, step: "end", showSymbol: false, connectNulls: false,
            data: data.times[track.t].map((time, index) => [time, track.v[index]]).concat([[data.end, track.v[track.v.length - 1]]]),
            lineStyle: { color: look.accent, width: 1.2 }, areaStyle: { color: look.faint(0.16) }, emphasis: { disabled: true },
            markArea: { silent: true, data: phaseAreas(data, look), z: 0 },
            markLine: track.steady === null ? undefined : {
              silent: true, symbol: "none", label: { show: false }, lineStyle: { color: look.quiet, width: 1, type: [2, 3] },
              data: [{ yAxis: track.steady }],
            },
          })),
        },
      };
    });
  }

  function topOf(track) {
    const values = track.v.filter((value) => value !== null);
    return Math.max.apply(null, values.concat([1e-9]));
  }

  function valueAt(track, times, time) {
    let low = 0;
    let high = times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time) low = middle; else high = middle - 1;
    }
    return track.v[low];
  }

  // --- Latencies ------------------------------------------------------------------------------

  function quantile(sorted, share) {
    const at = (sorted.length - 1) * share;
    const low = Math.floor(at);
    return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (at - low);
  }

  // From the fastest sample to the slowest within FAR interquartile ranges of the median; the slowest.
  function reach(series) {
    const sorted = series.samples.slice().sort((a, b) => a - b);
    const middle = quantile(sorted, 0.5);
    const spread = quantile(sorted, 0.75) - quantile(sorted, 0.25) || 0.01 * middle;
    const inside = sorted.filter((value) => value <= middle + FAR * spread);
    return [sorted[0], inside[inside.length - 1], sorted[sorted.length - 1]];
  }

  function latency(element, data) {
    const reaches = data.series.map(reach);
    const medians = data.series.map((series) => series.median);
    const state = { common: Math.max.apply(null, medians) < APART * Math.min.apply(null, medians) };
    const all = [Math.min.apply(null, reaches.map((limit) => limit[0])), Math.max.apply(null, reaches.map((limit) => limit[1]))];
    const logarithmic = () => state.common && all[1] > APART * all[0];
    const limits = () => reaches.map(function (limit) {
      const own = state.common ? all : limit;
      if (logarithmic()) return [own[0] / 1.1, own[1] * 1.1];
      const pad = 0.05 * (own[1] - own[0]) || 0.05 * own[1];
      return [Math.max(0, own[0] - pad), own[1] + pad];
    });
    const dots = data.series.reduce((sum, series) => sum + series.samples.length, 0);
    const plot = chart(element, function (width, look) {
      const narrow = width < NARROW;
      const rowHeight = (state.common ? 60 : 82) + (narrow ? 18 : 0);
      const left = narrow ? 8 : 150;
      const top = (at) => 8 + at * rowHeight + (narrow ? 18 : 0);
      const last = (at) => !state.common || at === data.series.length - 1;
      const within = limits();
      const heading = (text, at, below, style) => ({
        text: text, left: narrow && below ? "right" : 0, top: narrow ? top(at) - 18 : top(at) + (below ? 24 : 6), padding: 0,
        textStyle: Object.assign({ fontFamily: look.sans, fontWeight: 400, fontSize: 12, color: look.quiet }, style),
      });
      return {
        height: data.series.length * rowHeight + 30,
        option: {
          textStyle: { fontFamily: look.sans },
          title: data.series.map((series, at) => heading(shorten(series.label, narrow ? 30 : 20), at, false, { color: look.ink, fontSize: 13, fontWeight: 500 }))
            .concat(data.series.map((series, at) => heading(scaled(series.median, "s", SMALL), at, true))),
          grid: data.series.map((_, at) => ({ left: left, right: 18, top: top(at), height: 50 })),
          tooltip: tooltip(look, { trigger: "item" }),
          xAxis: data.series.map((_, at) => Object.assign(axisLook(look), {
            type: logarithmic() ? "log" : "value", gridIndex: at, min: within[at][0], max: within[at][1],
            axisLine: { show: true, onZero: false, lineStyle: { color: look.strong } },
            axisLabel: Object.assign(axisLook(look).axisLabel, { show: last(at), showMinLabel: false, showMaxLabel: false, formatter: (value) => scaled(value, "s", SMALL, 4) }),
          })),
          yAxis: data.series.map((_, at) => ({ type: "value", gridIndex: at, min: 0, max: 1, inverse: true, show: false })),
          series: data.series.reduce((all, series, at) => all.concat(strip(series, at, within[at], look)), []),
        },
      };
    }, dots > MANY_DOTS ? "canvas" : "svg");
    return {
      chart: plot,
      common: () => state.common,
      set: function (change) { Object.assign(state, change); plot.draw(plot.width); },
      note: function () {
        const within = limits();
        const notes = data.series.map(function (series, at) {
          const count = series.samples.filter((value) => value > within[at][1]).length;
          return count ? series.label + ": " + count + (count === 1 ? " sample" : " samples") + " beyond the axis, up to " + scaled(reaches[at][2], "s", SMALL) + "." : "";
        }).filter(Boolean);
        return (state.common ? logarithmic() ? ["Logarithmic axis."] : [] : ["Each variant has a separate axis."]).concat(notes).join(" ");
      },
    };
  }

  function strip(series, at, limits, look) {
    const most = Math.max(1, series.samples.length - 1);
    const data = [];
    series.samples.forEach(function (value, index) {
      if (value <= limits[1]) data.push([value, 0.06 + (0.7 * index) / most, index]);
    });
    const base = { xAxisIndex: at, yAxisIndex: at };
    const marks = [Object.assign({
      type: "scatter", symbolSize: 4, data: data, itemStyle: { color: look.faint(0.5) }, z: 3,
      tooltip: { formatter: (item) => tip(series.label, [["sample " + (item.value[2] + 1), scaled(item.value[0], "s", SMALL)]]) },
    }, base)];
    if (series.low !== null) {
      marks.push(Object.assign({
        type: "line", data: [[series.low, 0.9], [series.high, 0.9]], showSymbol: false, silent: true, z: 4,
        lineStyle: { color: look.ink, width: 3, type: series.level ? "solid" : [4, 2] },
      }, base));
    }
    const interval = series.low === null ? [] : [[series.level ? series.level + " confidence interval" : "interval, no confidence level stated", scaled(series.low, "s", SMALL, 5) + " to " + scaled(series.high, "s", SMALL, 5)]];
    marks.push(Object.assign({
      type: "scatter", symbol: "circle", symbolSize: 8, data: [[series.median, 0.9]], z: 5,
      itemStyle: { color: look.ink, borderColor: look.surface, borderWidth: 1.5 },
      tooltip: { formatter: () => tip(series.label, [["median", scaled(series.median, "s", SMALL, 5)]].concat(interval)) },
    }, base));
    return marks;
  }

  return { roofline: roofline, timeline: timeline, latency: latency };
})();
