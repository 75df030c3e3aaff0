(function () {
  "use strict";
  let configs, charts, places = [];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const main = document.querySelector("main");

  function room() {
    const style = window.getComputedStyle(main);
    return main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  }

  function draw(place, spec, mode, bind) {
    const config = Object.assign({}, configs[mode]);
    config.axis = Object.assign({}, config.axis, { titleLimit: room() - 80 });
    const options = {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: config,
      tooltip: { theme: mode }, bind: bind || undefined,
    };
    return window.vegaEmbed(place, spec, options);
  }

  // Each chart comes in several widths. The widest that fits is drawn; elastic charts are then
  // stretched.
  function fitSpec(place) {
    const widths = Object.keys(charts[place.id]).map(Number).sort((a, b) => b - a);
    const elastic = "elastic" in place.dataset;
    const free = Math.floor(room()) - 10; // minus the padding
    const fits = (one) => one <= (elastic ? 1.25 * free : free);
    const width = widths.find(fits) || widths[widths.length - 1];
    const spec = JSON.parse(JSON.stringify(charts[place.id][width]));
    if (elastic) stretch(spec, Math.min(free, widths[0]) - width);
    return spec;
  }

  function stretch(spec, by) {
    if (typeof spec.width === "number") spec.width = Math.max(160, spec.width + by);
    for (const part of [].concat(spec.vconcat || [], spec.layer || [])) stretch(part, by);
  }

  async function redraw(place) {
    const mode = dark.matches ? "dark" : "light";
    const controls = document.getElementById(place.id + "-controls");
    if (place.drawn) place.drawn.finalize();
    if (controls) controls.replaceChildren();
    place.drawn = await draw(place, fitSpec(place), mode, controls);
    if (place.scrollWidth > place.clientWidth) place.tabIndex = 0; // for keys to scroll it
    else place.removeAttribute("tabindex");
    await copyForPaper(place, mode);
  }

  // Paper is white: on a dark page each chart has a light copy for printing only.
  async function copyForPaper(place, mode) {
    const old = place.parentNode.querySelector(".on-paper");
    if (old) old.remove();
    if (mode === "light") return;
    const copy = document.createElement("div");
    copy.className = "on-paper";
    copy.setAttribute("aria-hidden", "true");
    place.after(copy);
    const spec = fitSpec(place);
    for (const param of spec.params || []) delete param.bind;
    await draw(copy, spec, "light");
  }

  let width = 0;
  async function redrawAll() {
    width = room();
    for (const place of places) await redraw(place);
    document.documentElement.dataset.drawn = "true";
  }

  // Paper shows what a screen folds away.
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details.more")) one.open = true;
  });

  let later = 0;
  window.addEventListener("resize", () => {
    window.clearTimeout(later);
    later = window.setTimeout(() => { if (Math.abs(room() - width) > 4) redrawAll(); }, 200);
  });
  dark.addEventListener("change", redrawAll);

  // A page that gets other charts later calls it again.
  window.drawCharts = async function () {
    ({ configs, charts } = JSON.parse(document.getElementById("charts").textContent));
    places = Array.from(document.querySelectorAll(".chart"));
    try {
      await redrawAll();
    } catch (error) {
      document.documentElement.dataset.drawn = "failed";
      throw error;
    }
  };
  if (document.getElementById("charts")) window.drawCharts();
})();
