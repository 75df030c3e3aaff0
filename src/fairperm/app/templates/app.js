(function () {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const tab = "tabs/" + document.body.dataset.tab;
  const words = JSON.parse($("words").textContent);
  const SHOWN_AFTER = 1000, ADJUSTED_AFTER = 350, ALIVE_EVERY = 20000; // ms
  let file = "", source = null, current = null, hasAnswer = false;

  /* talking to the server: lines of JSON, the last one is the result */
  async function ask(path, body, doing) {
    if (current) current.abort();
    const control = (current = new AbortController());
    const working = $("working");
    $("trouble").hidden = true;
    $("progress").removeAttribute("value");
    $("doing").textContent = doing;
    const show = setTimeout(() => { working.hidden = false; }, SHOWN_AFTER);
    try {
      const response = await fetch(tab + path, { method: "POST", body: body, signal: control.signal });
      if (!response.ok) throw new Refused(response.status, await response.text());
      let last = null, rest = "";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          last = JSON.parse(line);
          if (last.total) { $("progress").max = last.total; $("progress").value = last.done; }
        }
      }
      if (!last) throw new Refused(0, "The work ended without a result. Please try again.");
      if (last.error) throw new Refused(422, last.error);
      return last;
    } finally {
      clearTimeout(show);
      if (current === control) { current = null; working.hidden = true; }
    }
  }

  class Refused extends Error {
    constructor(status, text) { super(text); this.status = status; }
  }

  /* what fails is said in one place; what was cancelled is not */
  async function trying(work) {
    try {
      await work();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 410 && source) { // forgotten while the machine slept: the file is still here
        const again = source;
        source = null;
        await trying(() => open(again.query, again.body));
        return;
      }
      const isOurs = error instanceof Refused;
      $("trouble").textContent = isOurs ? error.message
        : "The page does not get an answer. Is fairperm still running? Start it again, and open its new address.";
      $("trouble").hidden = false;
      $("trouble").scrollIntoView({ block: "nearest" });
    }
  }

  /* the file */
  async function open(query, body) {
    source = null;
    forgetAnswer();
    $("question").hidden = true;
    showLook(await ask("/file?" + query, body, "Reading the file …"));
    source = { query: query, body: body };
    $("question-title").focus();
  }

  let drawn = 0; // the form's latest drawing: answers to earlier ones come too late
  function showLook(found) {
    drawn++;
    file = found.file;
    $("look").innerHTML = found.look;
    $("form").innerHTML = found.form;
    $("question").hidden = false;
    $("drop").classList.add("done");
  }

  const drop = $("drop");
  const take = (one) => one && trying(() => open("name=" + encodeURIComponent(one.name), one));
  $("file").addEventListener("change", () => { take($("file").files[0]); $("file").value = ""; });
  $("example").addEventListener("click", () => trying(() => open("which=example", "")));
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") take(event.dataTransfer.files[0]);
    });
  }
  $("look").addEventListener("change", (event) => trying(async () => {
    forgetAnswer();
    showLook(await ask("/look", fields(event.target.form), "Reading the file …"));
    document.querySelector("#look .reading").open = true;
    $("said").textContent = "The file was read again.";
  }));

  /* the question */
  function fields(form) {
    const found = {};
    for (const [name, value] of new FormData(form)) (found[name] = found[name] || []).push(value);
    return JSON.stringify({ file: file, fields: found });
  }

  $("form").addEventListener("change", (event) => trying(async () => {
    if (!("redraws" in event.target.dataset)) { later(); return; }
    const { name, value } = event.target, mine = ++drawn;
    if (name === "question") forgetAnswer(); // now: one asked for before the form is drawn stays
    const response = await fetch(tab + "/form", { method: "POST", body: fields($("form")) });
    if (!response.ok) throw new Refused(response.status, await response.text());
    const text = await response.text();
    if (mine !== drawn) return;
    const isOpen = document.querySelector("#form .reading").open;
    $("form").innerHTML = text;
    document.querySelector("#form .reading").open = isOpen;
    const same = Array.from($("form").elements).filter((one) => one.name === name);
    const next = same.find((one) => one.value === value) || same[0];
    if (next) next.focus({ preventScroll: true });
    if (name !== "question") later();
  }));
  $("form").addEventListener("input", (event) => {
    if ("adjusts" in event.target.dataset) later();
  });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    hasAnswer = false;
    clearTimeout(waiting);
    trying(answer);
  });
  $("cancel").addEventListener("click", () => {
    if (current) current.abort();
    $("said").textContent = "Cancelled.";
  });

  /* once there is an answer, it follows the form */
  let waiting = 0;
  function later() {
    clearTimeout(waiting);
    if (hasAnswer) waiting = setTimeout(() => trying(answer), ADJUSTED_AFTER);
  }

  function forgetAnswer() {
    clearTimeout(waiting);
    hasAnswer = false;
    $("answer").hidden = $("take").hidden = true;
    if (current) current.abort();
  }

  async function answer() {
    $("found").setAttribute("aria-busy", "true");
    try {
      const found = await ask("/run", fields($("form")), "Testing the gaps …");
      const page = await fetch(tab + "/runs/" + found.run + "/report.html");
      show(new DOMParser().parseFromString(await page.text(), "text/html"));
      $("files").innerHTML = found.take;
      if (found.seed !== null) $("form").elements.seed.value = found.seed;
      $("answer").hidden = $("take").hidden = false;
      if (!hasAnswer) $("answer-title").focus();
      hasAnswer = true;
      await draw();
      $("said").textContent = document.querySelector("#found .lede").textContent;
    } finally {
      $("found").removeAttribute("aria-busy");
    }
  }

  /* of the report, the sentence, the verdicts, the chart and the table; the rest is to print */
  const SKIPPED = ["found-title", "asked-title", "data-title", "thresholds-title", "power-title",
    "chance-title", "method-title", "rerun-title"];
  function show(report) {
    const main = report.querySelector("main"), tiles = main.querySelector(".tiles");
    const changes = main.querySelector("#changes"), parts = [main.querySelector(".lede")];
    if (changes) parts.push(changes); // the rest is about the old model
    else {
      const about = (one) => !SKIPPED.includes(one.getAttribute("aria-labelledby"));
      parts.push(tiles || main.querySelector(".case"), ...Array.from(main.querySelectorAll("section")).filter(about));
    }
    const charts = report.getElementById("charts"), old = $("charts");
    if (old) old.remove();
    $("found").replaceChildren(...parts.filter(Boolean).map((one) => document.importNode(one, true)));
    if (charts) document.body.append(document.importNode(charts, true));
    explainWords($("found"));
  }

  const loaded = {};
  const load = (name) => loaded[name] = loaded[name] || new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: "static/" + name, onload: resolve, onerror: reject });
    document.head.append(script);
  });
  async function draw() {
    if (!$("charts")) return;
    await load("vega.js");
    if (window.drawCharts) await window.drawCharts();
    else await load("charts.js");
  }

  /* words are explained where the mouse, the focus or a finger is */
  function explainWords(root) {
    for (const place of root.querySelectorAll("thead th, .badge, .tiles .of")) {
      const word = place.textContent.trim().replace(/\s+/g, " ").toLowerCase();
      if (!words[word] || place.querySelector(".word")) continue;
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "word" });
      button.append(...place.childNodes);
      button.dataset.word = word;
      if (place.closest("tbody")) button.tabIndex = -1; // heads and verdicts are reached once
      place.append(button);
    }
  }

  function explain(event) {
    const place = event.target.closest && event.target.closest(".word"), tip = $("tip");
    document.querySelectorAll("[aria-describedby=tip]").forEach((one) => one.removeAttribute("aria-describedby"));
    tip.hidden = !place;
    if (!place) return;
    tip.textContent = words[place.dataset.word];
    place.setAttribute("aria-describedby", "tip");
    const at = place.getBoundingClientRect(), room = document.documentElement.clientWidth;
    tip.style.top = at.bottom + window.scrollY + 6 + "px";
    tip.style.left = Math.max(8, Math.min(at.left, room - tip.offsetWidth - 8)) + window.scrollX + "px";
  }
  for (const name of ["mouseover", "focusin", "click"]) document.addEventListener(name, explain);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") $("tip").hidden = true; });

  /* taking it away */
  document.addEventListener("click", async (event) => {
    const id = event.target.dataset && event.target.dataset.copies;
    if (!id) return;
    await navigator.clipboard.writeText($(id).textContent);
    $("said").textContent = event.target.textContent = "Copied";
  });

  /* the server forgets tabs that are closed */
  setInterval(() => { fetch(tab, { method: "POST" }).catch(() => {}); }, ALIVE_EVERY);
  window.addEventListener("pagehide", () => navigator.sendBeacon(tab + "/closed"));
  if (document.body.dataset.given) trying(() => open("which=given", ""));
})();
