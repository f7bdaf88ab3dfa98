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
    figure.dicts ??= figure.rows.map((row) => {
      const made = {};
      figure.columns.forEach((name, at) => (made[name] = row[at]));
      return made;
    });
    return figure.dicts;
  }

  // Whether a figure shows one of several lengths trained on; which one is a signal of its drawing.
  const hasChoice = (figure) => figure.lengths.length > 1;
  const rowsAt = (figure, length) => rowsOf(figure).filter((row) => row.trained === length);
  const signalOf = (drawing, name) => drawing.signals.find((signal) => signal.name === name);

  // The figure as Vega draws it: its layout for this width, its rows, and the look of the theme.
  function drawingOf(figure, width, shade, length) {
    const config = structuredClone(data.themes[shade]);
    const narrow = width < 560;
    const legend = narrow ? 0 : 190;
    const fitting = figure.panel ? Math.floor((width - legend) / (figure.panel * 0.8 + 60)) : 1;
    const columns = Math.max(1, Math.min(figure.drawings.length, fitting));
    const drawing = structuredClone(figure.drawings[columns - 1]);
    const rows = drawing.data.find((each) => each.name === "rows");
    rows.values = rowsOf(figure);
    if (hasChoice(figure)) {
      const trained = signalOf(drawing, "trained");
      trained.value = length || trained.value;
      rows.values = rowsAt(figure, trained.value);
    }
    if (narrow) {
      Object.assign(config.legend, { orient: "bottom", columns: width < 420 ? 1 : 2, labelLimit: width - 60, symbolSize: 60 });
      Object.assign(config.axis, { labelLimit: 92, labelFontSize: 10 });
      for (const each of drawing.legends || []) each.direction ??= "horizontal";
      for (const mark of drawing.marks) {
        if (mark.type === "text" && mark.encode.update.fontSize) mark.encode.update.fontSize.value = 8.5;
      }
    }
    if (figure.panel === null) {
      drawing.width = width;
    } else {
      const wide = Math.min(1.25 * figure.panel, Math.floor((width - legend) / columns) - 62);
      signalOf(drawing, "child_width").value = wide;
      if (figure.square) signalOf(drawing, "child_height").value = wide;
    }
    return { drawing, config };
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
    const chosen = Number(element.closest("section").dataset.length);
    const { drawing, config } = drawingOf(figure, width, shade, chosen);
    const ready = vegaEmbed(element, drawing, {
      renderer: "svg", actions: false, tooltip: { theme: shade }, mode: "vega", config, hover: false, logLevel: 1,
    }).then((result) => {
      element.dataset.drawn = shade;
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

  // What is not looked at is drawn one by one, the open tab first, with a breath between for whoever clicks or scrolls;
  // so printing finds all of it.
  async function drawRest() {
    const left = charts.filter((element) => !drawn.has(element.dataset.figure));
    if (!left.length) {
      await Promise.all([...drawn.values()].map(({ ready }) => ready));
      root.dataset.complete = "";
      return;
    }
    await draw(left.find(isOpen) || left[0]);
    setTimeout(drawRest);
  }

  const drawAll = () => Promise.all(charts.map((element) => draw(element)));
  window.statetrackDrawAll = drawAll;

  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(redraw, 150);
  });

  // ---- which length trained on is shown ----
  const show = (view, figure, length) => view.signal("trained", length).data("rows", rowsAt(figure, length)).runAsync();

  for (const chooser of document.querySelectorAll(".chooser")) {
    const section = chooser.closest("section");
    const buttons = [...chooser.querySelectorAll("button")];
    const inside = [...section.querySelectorAll(".chart")].map((element) => figures.get(element.dataset.figure)).filter(hasChoice);
    const mark = (length) => buttons.forEach((each) => each.setAttribute("aria-pressed", String(Number(each.dataset.length) === length)));
    mark(signalOf(inside[0].drawings[0], "trained").value);
    chooser.addEventListener("click", (event) => {
      const length = Number(event.target.dataset.length);
      if (!length) return;
      mark(length);
      section.dataset.length = String(length);
      for (const figure of inside) drawn.get(figure.key)?.ready.then(({ view }) => show(view, figure, length));
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
    if (sections[number].getBoundingClientRect().top < 0) sections[number].scrollIntoView({ behavior: "instant" });
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

  // An address may end in a tab or in anything inside one, such as a figure.
  function openAddress() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    open(Math.max(0, sections.findIndex((section) => section.contains(target))));
    if (target) target.scrollIntoView();
  }
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
  // A cell that begins with a number is sorted by it, whatever follows: "1,024 (980 to 1,100)" comes after "342".
  function valueOf(cell) {
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const text = cell.textContent.trim();
    const number = /^(\d[\d,]*(?:\.\d+)?|\.\d+)(?=$|[\s(%,])/.exec(text);
    return number ? Number(number[1].replaceAll(",", "")) : text;
  }
  function compare(x, y) {
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
  }
  for (const head of document.querySelectorAll("table.sortable th")) {
    head.tabIndex = 0;
    const sort = () => {
      const at = [...head.parentNode.children].indexOf(head);
      const down = head.getAttribute("aria-sort") === "ascending";
      const body = head.closest("table").tBodies[0];
      const rows = [...body.rows].sort((a, b) => {
        const order = compare(valueOf(a.cells[at]), valueOf(b.cells[at]));
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
  requestAnimationFrame(() => setTimeout(drawRest));
})();
