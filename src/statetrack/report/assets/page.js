// Draws the figures of the page, in both themes, and makes tabs, tables and downloads work. Nothing is fetched.
"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const figures = new Map(data.figures.map((figure) => [figure.key, figure]));
  const charts = [...document.querySelectorAll(".chart")];
  const drawn = new Map(); // key -> {view, finalize, theme, width}
  let printing = false;

  // ---- theme ----
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  let theme = wanted.matches ? "dark" : "light";

  function setTheme(next) {
    theme = next;
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "light" : "dark";
    redraw();
  }
  button.addEventListener("click", () => setTheme(theme === "dark" ? "light" : "dark"));
  wanted.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));

  // ---- figures ----
  function rowsOf(figure) {
    if (!figure.dicts) {
      figure.dicts = figure.rows.map((row) => Object.fromEntries(row.map((value, at) => [figure.columns[at], value])));
    }
    return figure.dicts;
  }

  function specOf(figure, width, shade) {
    const spec = structuredClone(figure.spec);
    const config = structuredClone(data.themes[shade]);
    const narrow = width < 560;
    if (narrow) {
      config.legend = { ...config.legend, orient: "bottom", columns: width < 420 ? 1 : 2, labelLimit: width - 60, symbolSize: 60 };
      config.axis.labelLimit = 92;
      config.axis.labelFontSize = 10;
      config.text = { ...config.text, fontSize: 9 };
      shrinkText(spec);
    }
    Object.assign(spec, { datasets: { rows: rowsOf(figure) }, config, description: figure.alt });
    if (figure.panel === null) {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding" };
    } else {
      const legend = narrow ? 0 : 190;
      const columns = Math.max(1, Math.min(spec.columns, Math.floor((width - legend) / (figure.panel * 0.8 + 60))));
      spec.columns = columns;
      spec.spec.width = Math.min(1.25 * figure.panel, Math.floor((width - legend) / columns) - 62);
      if (figure.square) spec.spec.height = spec.spec.width;
    }
    return spec;
  }

  function shrinkText(spec) {
    for (const layer of spec.layer || []) {
      if (layer.mark && layer.mark.type === "text" && layer.mark.fontSize) layer.mark.fontSize = 8.5;
    }
  }

  function widthOf() {
    const main = document.querySelector("main");
    const style = getComputedStyle(main);
    const inner = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return Math.max(240, Math.floor(inner - (inner < 612 ? 26 : 46)));
  }

  async function draw(element) {
    const key = element.dataset.figure;
    const figure = figures.get(key);
    const width = widthOf();
    const shade = printing ? "light" : theme;
    const before = drawn.get(key);
    if (before && before.theme === shade && before.width === width) return before.ready;
    if (before) before.ready.then((result) => result && result.finalize());
    const ready = vegaEmbed(element, specOf(figure, width, shade), {
      renderer: "svg", actions: false, tooltip: { theme: shade }, mode: "vega-lite", logLevel: 1,
    }).then((result) => {
      element.dataset.drawn = shade;
      const chosen = element.closest("section").dataset.length;
      if (chosen) choose(result.view, Number(chosen));
      return result;
    });
    drawn.set(key, { theme: shade, width, ready });
    return ready;
  }

  const isOpen = (element) => printing || element.closest("section").hasAttribute("data-open");

  function redraw() {
    for (const element of charts) if (drawn.has(element.dataset.figure) && isOpen(element)) draw(element);
  }

  const near = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "600px" },
  );
  charts.forEach((element) => near.observe(element));

  // What is not looked at is drawn when there is nothing else to do, so that printing finds all of it.
  const idle = window.requestIdleCallback || ((call) => setTimeout(call, 60));
  async function drawRest() {
    const next = charts.find((element) => !drawn.has(element.dataset.figure));
    if (!next) {
      root.dataset.complete = "";
      return;
    }
    await draw(next);
    idle(drawRest);
  }

  const drawAll = () => Promise.all(charts.map((element) => draw(element)));
  window.statetrackDrawAll = drawAll;

  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(redraw, 150);
  });

  // ---- which length trained on is shown ----
  function choose(view, length) {
    try {
      view.signal("trained", length).runAsync();
    } catch {
      // this figure shows all lengths at once
    }
  }

  for (const chooser of document.querySelectorAll(".chooser")) {
    const section = chooser.closest("section");
    const buttons = [...chooser.querySelectorAll("button")];
    const inside = [...section.querySelectorAll(".chart")].map((element) => figures.get(element.dataset.figure));
    const defaults = inside.flatMap((figure) => (figure.spec.params || []).filter((param) => param.name === "trained"));
    const mark = (length) => buttons.forEach((each) => each.setAttribute("aria-pressed", String(Number(each.dataset.length) === length)));
    if (defaults.length) mark(defaults[0].value);
    chooser.addEventListener("click", (event) => {
      const length = Number(event.target.dataset.length);
      if (!length) return;
      mark(length);
      section.dataset.length = String(length);
      for (const figure of inside) drawn.get(figure.key)?.ready.then((result) => choose(result.view, length));
    });
  }

  // ---- tabs ----
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const sections = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));

  function open(number, focus) {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === number));
      tab.tabIndex = at === number ? 0 : -1;
      sections[at].toggleAttribute("data-open", at === number);
    });
    if (focus) tabs[number].focus();
    tabs[number].scrollIntoView({ block: "nearest", inline: "nearest" });
    redraw();
  }

  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => {
      open(at);
      history.replaceState(null, "", `#${sections[at].id}`);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) open((at + step + tabs.length) % tabs.length, true);
    });
  });

  function openAddress() {
    const at = sections.findIndex((section) => `#${section.id}` === decodeURIComponent(location.hash));
    open(Math.max(0, at));
  }
  root.classList.add("tabs");
  addEventListener("hashchange", openAddress);

  // ---- print ----
  let closed = [];
  function startPrint() {
    if (printing) return;
    printing = true;
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((each) => (each.open = true));
    drawAll();
  }
  function endPrint() {
    if (!printing) return;
    printing = false;
    closed.forEach((each) => (each.open = false));
    redraw();
  }
  addEventListener("beforeprint", startPrint);
  addEventListener("afterprint", endPrint);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? startPrint() : endPrint()));

  // ---- tables ----
  function valueOf(cell) {
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  }
  for (const head of document.querySelectorAll("table.sortable th")) {
    head.tabIndex = 0;
    const sort = () => {
      const at = [...head.parentNode.children].indexOf(head);
      const down = head.getAttribute("aria-sort") === "ascending";
      const body = head.closest("table").tBodies[0];
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [valueOf(a.cells[at]), valueOf(b.cells[at])];
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
        return down ? -order : order;
      });
      [...head.parentNode.children].forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  }

  // ---- downloads ----
  const quoted = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";

  function save(name, address) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
    if (address.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(address), 1000);
  }
  const saveText = (name, text, kind) => save(name, URL.createObjectURL(new Blob([text], { type: kind })));

  document.addEventListener("click", async (event) => {
    const kind = event.target.dataset && event.target.dataset.save;
    if (!kind) return;
    if (kind === "table") {
      const box = event.target.closest(".table");
      const rows = [...box.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent));
      saveText(`${box.id.replace("table-", "")}.csv`, csv(rows), "text/csv");
      return;
    }
    const figure = figures.get(event.target.closest(".save").dataset.figure);
    if (kind === "csv") {
      saveText(`${figure.key}.csv`, csv([figure.columns, ...figure.rows]), "text/csv");
      return;
    }
    const { view } = await drawn.get(figure.key).ready;
    save(`${figure.key}.${kind}`, await view.toImageURL(kind, 2));
  });

  openAddress();
  setTheme(theme);
  addEventListener("load", () => idle(drawRest));
})();
