"use strict";
// Pages act without this: it ticks all rows at once, and goes on with an action by itself until somebody interrupts it.
(() => {
  const boxes = () => [...document.querySelectorAll("input[name=ids][form=picked][type=checkbox]")];

  function count() {
    const all = document.querySelector("[data-pick-all]"), label = document.querySelector("[data-picked]");
    const rows = boxes(), picked = rows.filter((box) => box.checked).length;
    if (all) {
      all.closest("label").hidden = false;
      all.checked = picked > 0 && picked === rows.length;
      all.indeterminate = picked > 0 && picked < rows.length;
    }
    if (label) label.textContent = picked ? `${picked} selected` : "Selected";
    for (const button of document.querySelectorAll('#picked button[value^="picked:"]')) button.disabled = !picked;
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) for (const box of boxes()) box.checked = event.target.checked;
    if (event.target.matches("input[type=checkbox]")) count();
  });
  document.addEventListener("htmx:afterSwap", count);
  // A page that comes back from the browser's own store keeps its ticks.
  window.addEventListener("pageshow", count);

  let halted = false;

  function show(form, running) {
    form.querySelector("[data-halt]").hidden = !running;
    form.querySelector("button[type=submit]").hidden = running;
    form.querySelector("a.button").hidden = running;
  }

  function goOn() {
    const form = document.querySelector("[data-going] [data-go-on]");
    if (!form) return;
    show(form, !halted);
    if (!halted) htmx.trigger(form, "go");
  }

  document.addEventListener("click", (event) => {
    const form = event.target.closest("[data-go-on]");
    if (!form) return;
    if (event.target.matches("[data-halt]")) { halted = true; event.target.disabled = true; }
    if (event.target.matches("button[type=submit]")) halted = false;
  });
  document.addEventListener("htmx:afterSettle", (event) => { if (event.target.id === "sweep") goOn(); });
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target.closest ? event.target.closest("[data-go-on]") : null;
    if (form && !event.detail.successful) { halted = true; show(form, false); }
  });
  // When htmx has seen the page.
  document.addEventListener("DOMContentLoaded", () => { count(); setTimeout(goOn); });
})();
