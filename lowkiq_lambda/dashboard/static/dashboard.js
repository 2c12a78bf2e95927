"use strict";
// Pages work without this script. It refreshes them, and converts times to the viewer's zone.
(() => {
  const live = document.getElementById("live");
  const region = document.querySelector("[data-refresh]");
  const notice = document.getElementById("notice");
  // One format of numbers and times in every language of the browser, the same in which a person types a time.
  const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const isUtc = document.documentElement.dataset.times === "utc";
  const zone = isUtc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "your time";
  const rates = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

  const two = (number) => String(number).padStart(2, "0");
  const part = (at, name) => at[`get${isUtc ? "UTC" : ""}${name}`]();
  const clock = (at) => `${two(part(at, "Hours"))}:${two(part(at, "Minutes"))}`;
  const day = (at) => `${DAYS[part(at, "Day")]} ${clock(at)}`;
  const zoned = (at) => `${part(at, "FullYear")}-${two(part(at, "Month") + 1)}-${two(part(at, "Date"))} ${clock(at)}:${two(part(at, "Seconds"))}`;

  function localise(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) {
        if ("ago" in time.dataset) time.title = zoned(at);
        else time.textContent = ("clock" in time.dataset ? clock : "day" in time.dataset ? day : zoned)(at);
      }
    }
    for (const named of root.querySelectorAll("[data-zone]")) named.textContent = zone;
    for (const field of ranged(root)) {
      const at = new Date(`${field.defaultValue}Z`);
      if (field.value === field.defaultValue && !Number.isNaN(at.getTime())) field.value = zoned(at).slice(0, 16).replace(" ", "T");
    }
  }

  // A range is typed in the viewer's zone, too, and its address has it in UTC.
  const ranged = (root) => root.querySelectorAll("input[type=datetime-local]");

  document.addEventListener("formdata", ({ target, formData }) => {
    for (const { name, value } of ranged(target)) {
      const at = new Date(isUtc ? `${value}Z` : value);
      if (!Number.isNaN(at.getTime())) formData.set(name, at.toISOString().slice(0, 16));
    }
  });

  let title = document.title;

  function say(state, text) {
    if (!live) return;
    document.title = state === "away" ? `${text} · ${title}` : title;
    live.hidden = false;
    if (live.dataset.state !== state) live.dataset.state = state;
    const words = live.querySelector(".live-text");
    // A screen reader announces changes only.
    if (words.textContent !== text) words.textContent = text;
    tellAge();
  }

  // Beside the words that a screen reader is told of.
  function tellAge() {
    const seconds = Math.max(0, Math.round((Date.now() - readAt) / 1000));
    age.textContent = live.dataset.state === "live" ? `, ${seconds} s ago` : "";
  }

  // The dashboard's own errors name their target; a gateway's error is not shown.
  const isOurs = (xhr) => Boolean(xhr.getResponseHeader("HX-Retarget"));

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.isError) event.detail.shouldSwap = isOurs(event.detail.xhr);
  });

  function trouble(xhr) {
    if (!xhr.status) return "no connection";
    return xhr.status === 503 && isOurs(xhr) ? "Redis is unreachable" : `no answer (${xhr.status})`;
  }

  let waiting = false, timer, late, askedAt = 0, took = 500;
  // When the numbers of the page were read.
  let readAt = new Date();
  const age = document.getElementById("age");
  const asOf = () => `as of ${zoned(readAt).slice(11)}`;

  function next(seconds) {
    clearTimeout(timer);
    timer = setTimeout(refresh, seconds * 1000);
  }

  function refresh() {
    if (document.hidden) return say("paused", "paused");
    if (waiting) return;
    waiting = true;
    askedAt = Date.now();
    // An answer that does not come is told before it is given up.
    clearTimeout(late);
    late = setTimeout(() => { if (!document.hidden && live?.dataset.state !== "away") say("late", asOf()); }, Math.min(1500, Math.max(500, 3 * took)));
    htmx.trigger(region, "refresh");
  }

  function refreshed(event) {
    const { elt, xhr, successful } = event.detail;
    // The browser is on its way to the sign-in page.
    if (elt !== region || xhr.getResponseHeader("HX-Redirect")) return;
    waiting = false;
    clearTimeout(late);
    region.classList.toggle("stale", !successful);
    // Clears the notice of an earlier error.
    if (!isOurs(xhr)) notice.replaceChildren();
    if (successful) {
      readAt = new Date();
      took = readAt - askedAt;
      say("live", "live");
      live.classList.remove("beat"); void live.offsetWidth; live.classList.add("beat");
    } else {
      say("away", `${trouble(xhr)}, ${asOf()}`);
    }
    // Fewer requests to a server that fails.
    next(Number(region.dataset.refresh) * (successful ? 1 : 3));
  }

  // The values of the chart at the pointer.
  let tip, pointedAt;

  function point(chart, x) {
    const svg = chart.querySelector("svg"), box = svg.getBoundingClientRect(), outer = chart.getBoundingClientRect();
    const ended = chart.dataset.ended.split(" "), failed = chart.dataset.failed.split(" ");
    const last = ended.length - 1;
    if (last < 1) return;
    const place = Math.max(0, Math.min(last, Math.round((x - box.left) / box.width * last)));
    const at = new Date((Number(chart.dataset.began) + place * Number(chart.dataset.step)) * 1000);
    if (!tip || !tip.isConnected) {
      tip = document.createElement("p");
      tip.className = "tip";
      tip.setAttribute("aria-hidden", "true");
      chart.append(tip);
    }
    const rate = (count) => `${rates.format(count / Number(chart.dataset.step))}/s`;
    const arrived = chart.dataset.arrived?.split(" ")[place] ?? "-";
    tip.textContent = `${zoned(at)}${arrived === "-" ? "" : ` · arrived ${rate(arrived)}`} · ended ${rate(ended[place])} · failed ${rate(failed[place])}`;
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
    if (document.hidden) { clearTimeout(timer); clearTimeout(late); say("paused", "paused"); } else { waiting = false; refresh(); }
  });
  document.addEventListener("htmx:afterRequest", (event) => { if (region) refreshed(event); });
  document.addEventListener("htmx:afterSwap", (event) => {
    localise(event.detail.target);
    const named = document.querySelector("[data-title]");
    if (named) document.title = title = named.dataset.title;
    const chart = pointedAt === undefined ? null : document.querySelector("[data-chart]");
    if (chart) point(chart, pointedAt);
  });
  document.addEventListener("htmx:configRequest", (event) => {
    const proof = document.querySelector("input[name=csrf]");
    if (proof && event.detail.verb !== "get") event.detail.headers["X-CSRF-Token"] = proof.value;
  });

  // A person types a time in the viewer's zone; the address has it in UTC, with the same precision.
  const value = document.getElementById("value");
  const typing = /^(\d{4}-\d\d-\d\d)(?:[ T]+(\d\d:\d\d(:\d\d)?))?$/;

  function isTime() {
    return ["due_at", "updated_at"].includes(document.getElementById("by").value);
  }

  function inUtc(text) {
    const typed = typing.exec(text);
    const bare = document.getElementById("range").value === "lte" ? "23:59" : "00:00";
    const at = new Date(typed ? `${typed[1]}T${typed[2] || bare}${isUtc ? "Z" : ""}` : NaN);
    if (Number.isNaN(at.getTime())) return text;
    return `${at.toISOString().slice(0, typed[3] ? 19 : 16)}Z`;
  }

  function asTyped(text) {
    const at = new Date(text);
    if (!/^\d{4}-.*Z$/.test(text) || Number.isNaN(at.getTime())) return text;
    return zoned(at).slice(0, /T\d\d:\d\dZ$/.test(text) ? 16 : 19);
  }

  if (value) {
    if (isTime()) value.value = asTyped(value.value);
    value.form.addEventListener("submit", () => { if (isTime()) value.value = inUtc(value.value.trim()); });
    // When the browser goes back to this page, the field shows the time in the viewer's zone again.
    window.addEventListener("pageshow", (event) => {
      if (event.persisted && isTime()) value.value = asTyped(value.value);
    });
  }

  // Only pages of a safe origin may write to the clipboard.
  if (navigator.clipboard) document.documentElement.classList.add("copies");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });

  localise(document);
  if (region && live) setInterval(tellAge, 1000);
  if (region) { say("live", "live"); next(Number(region.dataset.refresh)); }
})();
