"use strict";
// Pages work without this: it keeps them fresh, and puts times into the viewer's zone.
(() => {
  const live = document.getElementById("live");
  const region = document.querySelector("[data-refresh]");
  const notice = document.getElementById("notice");
  const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  const day = new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "numeric", minute: "2-digit" });
  const digits = new Intl.NumberFormat();

  function localise(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) {
        const form = "clock" in time.dataset ? clock : "day" in time.dataset ? day : zoned;
        time.textContent = form.format(at);
      }
    }
  }

  function say(state, text) {
    if (!live) return;
    live.hidden = false;
    if (live.dataset.state !== state) live.dataset.state = state;
    const words = live.querySelector(".live-text");
    // A screen reader is told of changes only.
    if (words.textContent !== text) words.textContent = text;
  }

  let waiting = false, timer;

  function next(seconds) {
    clearTimeout(timer);
    timer = setTimeout(refresh, seconds * 1000);
  }

  function refresh() {
    if (document.hidden) return say("paused", "paused");
    if (!waiting) { waiting = true; htmx.trigger(region, "refresh"); }
  }

  function refreshed(event) {
    if (event.detail.elt !== region) return;
    waiting = false;
    const { xhr, successful } = event.detail;
    region.classList.toggle("stale", !successful);
    if (successful) {
      notice.replaceChildren();
      say("live", "live");
      live.classList.remove("beat"); void live.offsetWidth; live.classList.add("beat");
    } else {
      say("away", xhr && xhr.status ? "Redis is away" : "no connection");
    }
    // What is away is asked less often.
    next(Number(region.dataset.refresh) * (successful ? 1 : 3));
  }

  // What a point of the chart stands for, beside the pointer.
  let tip, pointedAt;

  function point(chart, x) {
    const svg = chart.querySelector("svg"), box = svg.getBoundingClientRect(), outer = chart.getBoundingClientRect();
    const processed = chart.dataset.processed.split(" "), failed = chart.dataset.failed.split(" ");
    const last = processed.length - 1;
    if (last < 1) return;
    const place = Math.max(0, Math.min(last, Math.round((x - box.left) / box.width * last)));
    const at = new Date((Number(chart.dataset.began) + place * Number(chart.dataset.step)) * 1000);
    if (!tip || !tip.isConnected) {
      tip = document.createElement("p");
      tip.className = "tip";
      tip.setAttribute("aria-hidden", "true");
      chart.append(tip);
    }
    tip.textContent = `${zoned.format(at)} · ${digits.format(processed[place])} processed · ${digits.format(failed[place])} failed`;
    const middle = box.left - outer.left + box.width * place / last;
    tip.style.left = `${Math.max(4, Math.min(outer.width - tip.offsetWidth - 4, middle - tip.offsetWidth / 2))}px`;
  }

  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.("[data-chart]");
    pointedAt = chart ? event.clientX : undefined;
    if (chart) point(chart, event.clientX);
    else if (tip) { tip.remove(); tip = undefined; }
  });

  document.addEventListener("visibilitychange", () => {
    if (!region) return;
    if (document.hidden) { clearTimeout(timer); say("paused", "paused"); } else { waiting = false; refresh(); }
  });
  document.addEventListener("htmx:afterRequest", (event) => { if (region) refreshed(event); });
  document.addEventListener("htmx:afterSwap", (event) => {
    localise(event.detail.target);
    const chart = pointedAt === undefined ? null : document.querySelector("[data-chart]");
    if (chart) point(chart, pointedAt);
  });
  document.addEventListener("htmx:configRequest", (event) => {
    const proof = document.querySelector("input[name=csrf]");
    if (proof && event.detail.verb !== "get") event.detail.headers["X-CSRF-Token"] = proof.value;
  });

  // A time is typed as it is shown, in the viewer's zone; the address has it in UTC.
  const value = document.getElementById("value");

  function isTime() {
    return ["perform_in", "updated_at"].includes(document.getElementById("by").value);
  }

  if (value) {
    for (const zone of document.querySelectorAll("[data-zone]")) zone.textContent = "your time";
    const at = new Date(value.value);
    if (isTime() && /^\d{4}-.*Z$/.test(value.value) && !Number.isNaN(at.getTime())) value.value = at.toLocaleString("sv-SE");
    value.form.addEventListener("submit", () => {
      const typed = value.value.trim(), meant = new Date(typed.replace(" ", "T"));
      if (isTime() && /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?$/.test(typed) && !Number.isNaN(meant.getTime())) value.value = meant.toISOString();
    });
    // Shown again as it was typed, when the browser comes back to this page.
    window.addEventListener("pageshow", (event) => {
      if (event.persisted && isTime() && /Z$/.test(value.value)) value.value = new Date(value.value).toLocaleString("sv-SE");
    });
  }

  localise(document);
  if (region) { say("live", "live"); next(Number(region.dataset.refresh)); }
})();
