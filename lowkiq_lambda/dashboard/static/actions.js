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

  const notice = document.getElementById("notice");

  function show(form, running) {
    const halt = form.querySelector("[data-halt]");
    halt.hidden = !running;
    halt.disabled = false;
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

  // The form stays where it is, with what goes on from there.
  function stop(form, xhr) {
    halted = true;
    show(form, false);
    // A refusal of ours has said why.
    if (xhr.getResponseHeader("HX-Retarget")) return;
    const sentence = document.createElement("p");
    sentence.className = "notice";
    sentence.textContent = `${xhr.status ? `The server gave no answer (${xhr.status})` : "The server cannot be reached"}: the action has stopped. Nothing is lost, and “${form.querySelector("button[type=submit]").textContent}” goes on from here.`;
    notice.replaceChildren(sentence);
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!event.target.matches("[data-go-on]")) return;
    notice.replaceChildren();
    show(event.target, true);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { successful, xhr } = event.detail;
    // Who has to sign in again is on the way there.
    if (event.target.matches("[data-go-on]") && !successful && !xhr.getResponseHeader("HX-Redirect")) stop(event.target, xhr);
  });
  document.addEventListener("DOMContentLoaded", count);

  // A page that is an answer to a form is given an address that the browser can come back to.
  const answer = document.querySelector("[data-at]");
  if (answer) history.replaceState(null, "", answer.dataset.at);
})();
